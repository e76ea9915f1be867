import { expect } from 'chai'
import { describe, it } from 'mocha'
import { confirmed, DeclinedError, goAhead, required, requiredChoice, requiredSecret } from '#cli/ask.ts'
import { UsageError } from '#cli/usage-error.ts'
import { answered } from './simulated-terminal.ts'

const VARIABLE = 'BILLING_CLI_STRIPE_SECRET_KEY'
const APPS = [
  { value: '1', name: '[TEST] Reader', description: 'pk_1' },
  { value: '2', name: '[LIVE] Sec\u001b[2Jond', description: 'pk_2' },
]
const pickApp = (choices = APPS) => requiredChoice(undefined, '<app>', 'Which app?', () => Promise.resolve(choices))

describe('a question of the command line', () => {
  it('stays until a required value is not empty', async () => {
    const name = await answered(
      () => required(undefined, '--name', 'Name of the app'),
      async ({ events, getScreen, nextRender }) => {
        expect(getScreen()).to.equal('? Name of the app')
        events.keypress('enter')
        await nextRender()
        expect(getScreen()).to.include('You must provide a value')
        events.type('Reader')
        events.keypress('enter')
      },
    )
    expect(name).to.equal('Reader')
  })

  it('names the argument where there are no better words', async () => {
    const plan = await answered(
      () => required('', '<plan_id>'),
      ({ events, getScreen }) => {
        expect(getScreen()).to.equal('? <plan_id>:')
        events.type('plan_1')
        events.keypress('enter')
      },
    )
    expect(plan).to.equal('plan_1')
  })

  it('offers a menu that describes the choice under the cursor; a name cannot control the terminal', async () => {
    const app = await answered(pickApp, async ({ events, getScreen, getFullOutput }) => {
      expect(getScreen()).to.include('[TEST] Reader').and.include('pk_1').and.not.include('pk_2')
      events.keypress('down')
      expect(getScreen()).to.include('pk_2').and.not.include('pk_1')
      events.keypress('enter')
      expect(await getFullOutput({ raw: true })).not.to.include('\u001b[2J')
    })
    expect(app).to.equal('2')
  })

  it('is wrong usage where its menu would be empty', async () => {
    const refusal = await answered(
      () => pickApp([]).catch((error: unknown) => error),
      () => undefined,
    )
    expect(refusal)
      .to.be.an.instanceOf(UsageError)
      .with.property('message', 'missing required argument <app>, and there is none to choose from')
  })

  it('shows a star for each character of a secret, and never the secret, after Ctrl+T neither', async () => {
    const secret = await answered(
      () => requiredSecret(VARIABLE, undefined, 'Stripe secret key:'),
      async ({ events, getScreen, getFullOutput }) => {
        events.type('sk_test_1')
        expect(getScreen()).to.equal('? Stripe secret key: *********')
        events.keypress({ name: 't', ctrl: true })
        events.keypress('enter')
        expect(await getFullOutput({ raw: true })).not.to.include('sk_test')
      },
    )
    expect(secret).to.equal('sk_test_1')
  })

  it('takes only a yes for a yes; anything else cancels the command', async () => {
    const goOn = async (key: string): Promise<unknown> =>
      answered(
        () => goAhead(undefined, 'Disable the app?').catch((error: unknown) => error),
        ({ events, getScreen }) => {
          expect(getScreen()).to.equal('? Disable the app? (y/N)')
          events.type(key)
          events.keypress('enter')
        },
      )
    expect(await goOn('y')).to.equal(undefined)
    for (const key of ['', 'n']) expect(await goOn(key), `'${key}'`).to.be.an.instanceOf(DeclinedError)
  })

  it('is not asked where the answer was given', async () => {
    const values = await answered(
      async () => [
        await required('Reader', '--name'),
        await requiredChoice('1', '<app>', 'Which app?', () => Promise.resolve(APPS)),
        await requiredSecret(VARIABLE, 'sk_test_1', 'Stripe secret key:'),
        await confirmed(true, 'Disable the app?'),
      ],
      async ({ getFullOutput }) => expect(await getFullOutput({ raw: true })).to.equal(''),
    )
    expect(values).to.deep.equal(['Reader', '1', 'sk_test_1', true])
  })
})
