import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { before, describe, it } from 'mocha'
import { packedClient } from './packed-client.ts'
import { readmeExamples } from './readme-examples.ts'
import { typeErrors } from './type-check.ts'

const ROOT = join(import.meta.dirname, '../..')

/** What the types must allow, and what they must refuse. */
const USE = `
export async function use(paygate: Paygate): Promise<string[]> {
  const page: Page<Customer> = await paygate.customers.list()
  const plans: Plan[] = await paygate.plans.list()
  const found = [String(page.data.length + plans.length)]
  for await (const { code } of paygate.plans.list()) found.push(code)
  for await (const { event, cursor } of paygate.events.follow({ from: new Date(), signal: AbortSignal.timeout(1) })) {
    if (event.event_type === 'transaction.completed') found.push(cursor, event.data.plan_ref, String(event.attempts))
    // @ts-expect-error a type that there is not
    if (event.event_type === 'transaction.lost') found.push(cursor)
  }
  const { event_type } = await paygate.webhooks.verify('{}', new Headers(), ['whsec_1', 'whsec_2'])
  // @ts-expect-error the address is missing
  found.push(event_type, typeof new Paygate({ apiKey: 'k', apiSecret: 's' }))
  const { headers } = await signWebhook({ event_type: 'webhook.test', app_id: 1, data: {}, created_at: '' }, 'whsec_1')
  return hasAccess(null) ? Object.keys(headers) : found
}
`
const NAMES = `{ Paygate, hasAccess, type Customer, type Page, type Plan }`
const IMPORTED = `import ${NAMES} from 'paygate-client'\nimport { signWebhook } from 'paygate-client/testing'\n${USE}`
const REQUIRED = `import client = require('paygate-client')
import testing = require('paygate-client/testing')
import Paygate = client.Paygate
type Customer = client.Customer
type Page<Item> = client.Page<Item>
type Plan = client.Plan
const { hasAccess } = client
const { signWebhook } = testing
${USE}`

const BROWSER = { lib: ['es2023', 'dom', 'dom.iterable', 'dom.asynciterable'], types: [] }

/** How projects find their packages. */
const PROJECTS = [
  { module: 'node16', moduleResolution: 'node16', ...BROWSER },
  { module: 'nodenext', moduleResolution: 'nodenext', lib: ['es2023'], types: ['node'] },
  { module: 'esnext', moduleResolution: 'bundler', ...BROWSER },
] as const

describe('the types of the packed client, without skipLibCheck', () => {
  let project: string

  before(async () => {
    project = await packedClient()
    for (const name of ['@types', 'undici-types', 'hono'])
      symlinkSync(join(ROOT, 'node_modules', name), join(project, 'node_modules', name))
  })

  for (const options of PROJECTS) {
    const { moduleResolution } = options
    it(`are right in a project of ${moduleResolution}, as ESM and as CommonJS`, () => {
      const folder = join(project, moduleResolution)
      mkdirSync(folder)
      writeFileSync(join(folder, 'imported.mts'), IMPORTED)
      writeFileSync(join(folder, 'compiled.cts'), IMPORTED)
      const files = ['imported.mts', 'compiled.cts']
      // A bundler has no `import … = require`.
      if (moduleResolution !== 'bundler') {
        writeFileSync(join(folder, 'required.cts'), REQUIRED)
        files.push('required.cts')
      }
      const compilerOptions = {
        ...{ ...options, target: 'es2022', strict: true, exactOptionalPropertyTypes: true, noEmit: true },
        // TypeScript's own libraries need no check; those of packages are checked.
        ...{ skipLibCheck: false, skipDefaultLibCheck: true },
      }
      expect(typeErrors(folder, files, compilerOptions)).to.equal('')
    })
  }

  it('are right in the examples of its README', () => {
    const folder = join(project, 'examples')
    mkdirSync(folder)
    // Express brings no types.
    const files = readmeExamples().flatMap(({ name, code }, index) => {
      const file = `${name ?? 'example'}${index}.ts`
      writeFileSync(join(folder, file), code)
      return name === 'express' ? [] : file
    })
    expect(files.length).to.equal(readmeExamples().length - 1)
    const options = { module: 'nodenext', target: 'es2023', lib: ['es2023', 'dom'] }
    expect(typeErrors(folder, files, { ...options, strict: true, skipLibCheck: true, noEmit: true })).to.equal('')
  })
})
