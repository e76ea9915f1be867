import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { API_ROUTES } from '#daemon/app.ts'
import { openApiOf } from '#reference/openapi.ts'
import { exampleOf, SAMPLE_LANGUAGES } from '#reference/samples.ts'
import { scratchFolder } from '../support/scratch.ts'
import { startScenario, type Scenario } from '../support/scenario.ts'

const run = promisify(execFile)
const CLIENT = join(import.meta.dirname, '../../client/src/index.ts')

/** How a program of samples is run; `mark` prints DONE between two samples. */
const PROGRAMS: Readonly<Record<string, { file: string; command: readonly string[]; mark: string }>> = {
  Shell: { file: 'samples.sh', command: ['bash', '-e'], mark: 'echo; echo DONE' },
  TypeScript: { file: 'samples.mts', command: [process.execPath], mark: "console.log('DONE')" },
  Python: { file: 'samples.py', command: ['/usr/bin/python3'], mark: 'print("DONE")' },
  PHP: { file: 'samples.php', command: ['php'], mark: 'echo "DONE\\n";' },
}

/** Every call of the API. What archives the price comes last: it is sold before. */
const CALLS = Object.entries(openApiOf(API_ROUTES, 'https://paygate.seller.example').paths)
  .flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => exampleOf(`${method.toUpperCase()} ${path}`, operation)),
  )
  .sort((one, other) => Number(one.id === 'updatePrice') - Number(other.id === 'updatePrice'))

describe('the samples of the reference', () => {
  let scenario: Scenario
  let ids: Readonly<Record<string, string>>

  beforeEach(async () => {
    scenario = await startScenario({ methods: ['test'] })
    // The samples sign with the machine's time.
    scenario.service.ctx.clock.setToPresent()
    const plan = await scenario.plan('basic', {
      amount: 99000,
      currency: 'VND',
      interval_unit: 'month',
      interval_count: 1,
    })
    const { body: customer } = await scenario.seller.post('/api/v1/customers', { name: 'An', email: 'an@example.com' })
    const session = await scenario.checkout({ external_ref: 'user-42', price_id: plan.prices[0] })
    await scenario.pay(session)
    const { body: events } = await scenario.seller.get('/api/v1/events')
    const { body: promotion } = await scenario.seller.post('/api/v1/promotions', { code: 'OLDER', percent: 5 })
    ids = {
      plan_1: plan.id,
      price_1: plan.prices[0] ?? '',
      cus_1: customer.data.id,
      evt_1: events.data[0]!.id,
      promo_1: promotion.data.id,
      'transactions/1': `transactions/${session.transaction_id}`,
      'transactions.get(1)': `transactions.get(${session.transaction_id})`,
    }
  })

  afterEach(() => scenario.service.stop())

  it('are in four languages', () => {
    expect(SAMPLE_LANGUAGES.map(({ name }) => name)).to.deep.equal(Object.keys(PROGRAMS))
  })

  for (const { name, setup, sample } of SAMPLE_LANGUAGES) {
    it(`in ${name} make every call of the API, and each is answered`, async () => {
      const { file, command, mark } = PROGRAMS[name]!
      const samples = CALLS.map((call) => `${sample(call)}\n${mark}`).join('\n')
      const program = `${setup.replace('paygate-client', CLIENT)}\n${samples}\n`
      const path = join(scratchFolder('samples'), file)
      writeFileSync(
        path,
        Object.entries(ids).reduce((text, [example, id]) => text.replaceAll(example, id), program),
      )
      const { stdout } = await run(command[0]!, [...command.slice(1), path], {
        env: {
          ...process.env,
          PAYGATE_URL: scenario.service.url,
          PAYGATE_API_KEY: scenario.app.apiKey,
          PAYGATE_API_SECRET: scenario.app.secret,
        },
      })
      expect(stdout.match(/^DONE$/gm)).to.have.length(CALLS.length)
    })
  }
})
