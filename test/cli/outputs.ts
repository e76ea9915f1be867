import { appendFileSync, readFileSync } from 'node:fs'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { expect } from 'chai'
import { OUTPUTS_FILE } from '#cli/reference.ts'
import type { Schema } from '../support/infer-schema.ts'

/** Where `npm run outputs` has each JSON output of the tests recorded; absent in a run that only checks them. */
const RECORD = process.env['PAYGATE_RECORD_OUTPUTS']
const ajv = new Ajv2020({ strict: false })
const schemas = JSON.parse(readFileSync(OUTPUTS_FILE, 'utf8')) as Readonly<Record<string, Schema>>

/** Compiles a schema when a command first prints: all of them take a second. */
const validatorOf = (command: string): ValidateFunction | undefined =>
  ajv.getSchema(command) ?? (schemas[command] && ajv.addSchema(schemas[command], command).getSchema(command))

/** Fails when a command's JSON is not what `docs --json` says of it. */
export function checkOutput(words: readonly string[], { code, stdout }: { code: number | null; stdout: string }): void {
  if (code === 2 || !words.includes('--json') || words.includes('--dry-run')) return
  // One runs another command, and the other prints these schemas.
  if (words[0] === 'as' || words[0] === 'docs') return
  const command = commandOf(words)
  if (command === null || stdout === '') return
  const value: unknown = JSON.parse(stdout)
  if (RECORD !== undefined) {
    appendFileSync(RECORD, `${JSON.stringify({ command, value })}\n`)
    return
  }
  const validate = validatorOf(command)
  expect(
    validate?.(value),
    `${command}: ${ajv.errorsText(validate?.errors)}; npm run outputs records the schemas`,
  ).to.equal(true)
}

function commandOf(words: readonly string[]): string | null {
  const plain = words.filter((word) => !word.startsWith('-'))
  const names = [plain.slice(0, 2).join(' '), plain[0] ?? '']
  return names.find((name) => NAMES.has(name)) ?? null
}

const NAMES = new Set(Object.keys(schemas).concat(JSON.parse(process.env['PAYGATE_COMMANDS'] ?? '[]') as string[]))
