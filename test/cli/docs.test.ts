import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { createProgram } from '#cli/program.ts'
import { describeCommands, formatReference, type MappedCommand } from '#cli/reference.ts'
import { shareNulls, type Schema } from '../support/infer-schema.ts'
import { itRunsEveryForm, leavesOf } from './forms.ts'
import { openCli } from './run-cli.ts'

const REFERENCE = join(import.meta.dirname, '..', '..', 'docs', 'cli.md')

describe('the reference of the command line', () => {
  it('in docs/cli.md is what billing-cli docs prints (npm run docs writes it)', async () => {
    const { stdout } = await openCli().run(['docs'])
    const documented = /<!-- cli:start -->\n([\s\S]*)<!-- cli:end -->/.exec(readFileSync(REFERENCE, 'utf8'))?.[1]
    expect(documented).to.equal(stdout)
  })

  it('has every command with an example', async () => {
    const groups = describeCommands(await createProgram())
    const commands = groups.flatMap((group) => group.commands)
    expect(commands.length).to.be.greaterThan(50)
    for (const { command, examples } of commands) expect(examples, command).not.to.have.length(0)
    const lines = formatReference(groups).split('\n')
    for (const { command } of commands)
      expect(
        lines.some((line) => line.startsWith(`| \`${command.replaceAll('|', '\\|')}\` |`)),
        command,
      ).to.equal(true)
  })

  it('as JSON is a map for programs: each command with its form, effect, role and the schema of its output', async () => {
    const printed = (await openCli().json(['docs'])) as MappedCommand[]
    const commands = leavesOf(await createProgram()).map(({ path }) => path.join(' '))
    expect(printed.map(({ command }) => command)).to.have.members(commands)
    for (const mapped of printed) {
      expect(mapped).to.have.all.keys('command', 'arguments', 'options', 'effect', 'role', 'output')
      expect(['reads', 'changes', 'moves_money']).to.include(mapped.effect)
      expect(['view', 'support', 'money', 'owner']).to.include(mapped.role)
      if (mapped.command !== 'as') expect(mapped.output, mapped.command).to.have.property('type')
    }
    const resolve = printed.find(({ command }) => command === 'transaction resolve')
    expect(resolve).to.deep.include({ effect: 'moves_money', role: 'support' })
    expect(resolve!.arguments).to.deep.equal([{ name: 'id', required: true }])
    expect(resolve!.options.map(({ name }) => name)).to.include.members(['--action', '--note', '--dry-run'])
  })

  it('as JSON lets a field that may be null in one output be null in all', async () => {
    const printed = (await openCli().json(['docs'])) as MappedCommand[]
    const schemas = Object.fromEntries(printed.map(({ command, output }) => [command, output as Schema]))
    expect(shareNulls(schemas)).to.deep.equal(schemas)
  })

  itRunsEveryForm('docs.test.ts')
})
