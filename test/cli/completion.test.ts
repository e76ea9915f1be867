import { execFile } from 'node:child_process'
import { dirname } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { before, beforeEach, describe, it } from 'mocha'
import { COMPLETION_SCRIPTS, SHELLS, type Shell } from '#cli/shells.ts'
import { testContext, type TestContext } from '../support/context.ts'
import { aCheckout, aCustomer, anApp, aPlan, aSubscription, priceId, type TestApp } from '../support/factories.ts'
import { itRunsEveryForm } from './forms.ts'
import { openCli, PROGRAM, type Cli } from './run-cli.ts'

describe('completion of the command line', () => {
  let cli: Cli
  let ctx: TestContext
  let app: TestApp

  before(() => {
    cli = openCli()
  })

  beforeEach(async () => {
    ctx = testContext()
    app = await anApp(ctx, { name: 'Reader' })
  })

  /** What is offered for the last of the words, without the descriptions. */
  async function offered(...words: string[]): Promise<string[]> {
    const { code, stdout } = await cli.run(['complete', ...words])
    expect(code).to.equal(0)
    return stdout.split('\n').flatMap((line) => (line === '' ? [] : [line.split('\t')[0]!]))
  }

  it('offers commands, then their subcommands and options, whatever options come before', async () => {
    expect(await offered('au')).to.deep.equal(['audit'])
    expect(await offered('app', '')).to.include.members(['create', 'rotate-secret', 'clock'])
    expect(await offered('--json', 'app', 'rot')).to.deep.equal(['rotate-secret', 'rotate-webhook-secret'])
    expect(await offered('transaction', 'resolve', '17', '--d')).to.deep.equal(['--dry-run'])
    expect(await offered('help', 'pl')).to.deep.equal(['plan'])
    expect(await offered('--js')).to.deep.equal(['--json'])
  })

  it('offers the values that an option or an argument accepts', async () => {
    expect(await offered('transaction', 'resolve', '17', '--action', '')).to.deep.equal([
      'refund',
      'complete',
      'dismiss',
    ])
    expect(await offered('transaction', 'list', '--status', 'p')).to.deep.equal(['pending'])
    expect(await offered('app', 'create', '--auth', '')).to.deep.equal(['hmac', 'identity'])
    expect(await offered('method', 'enable', '1', 'ba')).to.deep.equal(['bank_transfer'])
    expect(await offered('subscription', 'reminders', '1', 'an', '')).to.deep.equal(['on', 'off'])
    expect(await offered('completion', '')).to.deep.equal([...SHELLS])
  })

  it('offers nothing for free text and for unknown commands', async () => {
    expect(await offered('app', 'create', '--name', '')).to.deep.equal([])
    expect(await offered('no-such-command', '')).to.deep.equal([])
  })

  it('offers and prints nothing when the database cannot be reached', async () => {
    const unreachable = openCli({ BILLING_DATABASE_URL: 'mysql://nobody@127.0.0.1:1/none' })
    expect(await unreachable.run(['complete', 'app', 'show', ''])).to.include({ code: 1, stdout: '', stderr: '' })
  })

  it('offers apps, plans, prices, customers, transactions and end users', async () => {
    const plan = await aPlan(ctx, app)
    const customer = await aCustomer(ctx, app)
    const session = await aCheckout(ctx, app, { price_id: priceId(plan), external_ref: 'user-42' })
    const id = String(app.app.id)
    expect(await offered('app', 'show', '')).to.deep.equal([id])
    expect(await offered('transaction', 'list', '--app', '')).to.deep.equal([id])
    expect(await offered('plan', 'show', id, '')).to.deep.equal([`plan_${plan.id}`])
    expect(await offered('price', 'archive', id, `plan_${plan.id}`, 'pri')).to.deep.equal([priceId(plan)])
    expect(await offered('customer', 'show', id, '')).to.deep.equal([`cus_${customer.id}`])
    expect(await offered('transaction', 'show', '')).to.deep.equal([String(session.transaction_id)])
    expect(await offered('subscription', 'show', id, 'us')).to.deep.equal(['user-42'])
    await aSubscription(ctx, app, plan)
    const [event] = await cli.json(['webhook', 'list', id])
    for (const command of ['show', 'retry']) expect(await offered('webhook', command, 'ev')).to.deep.equal([event!.id])
  })

  it('offers no text that a shell would read as more than one word', async () => {
    const plan = await aPlan(ctx, app)
    for (const text of ['$(reboot)', '`reboot`', 'a;b', 'a b', "it's", '*', 'fine_1'])
      await aCheckout(ctx, app, { price_id: priceId(plan), external_ref: text })
    expect(await offered('subscription', 'show', String(app.app.id), '')).to.deep.equal(['fine_1'])
    const { stdout } = await cli.run(['complete', 'app', 'show', ''])
    expect(stdout).to.equal(`${app.app.id}\tReader\n`)
  })

  for (const [shell, ask] of Object.entries({
    bash: 'COMP_WORDS=(billing-cli "$@"); COMP_CWORD=$#; _billing_cli; printf "%s\\n" "${COMPREPLY[@]}"',
    // zsh draws the menu itself, so this prints what its completion function receives.
    zsh: '_describe() { print -l -- ${(P)3%%:*} }; _files() { print files }; words=(billing-cli "$@"); CURRENT=$(( $# + 1 )); _billing_cli',
    fish: 'complete -C "billing-cli $argv" | string split -f 1 \\t',
  } satisfies Record<Shell, string>)) {
    it(`is offered by ${shell}, through the script that the program prints`, async () => {
      const script = COMPLETION_SCRIPTS[shell as Shell]
      expect((await cli.run(['completion', shell])).stdout).to.equal(`${script}\n`)
      const json = await cli.json(['completion', shell])
      expect(json).to.deep.equal({ shell, script })
      const env = { ...cli.env, PATH: `${dirname(PROGRAM)}:${cli.env['PATH'] ?? ''}`, HOME: cli.env['BILLING_HOME'] }
      const before = shell === 'zsh' ? 'compdef() { : }\n' : ''
      const asked = async (...words: string[]): Promise<string[]> => {
        const startup = { bash: ['--norc'], zsh: ['-f'], fish: ['--no-config'] }[shell as Shell]
        const arguments_ = shell === 'fish' ? [words.join(' ')] : [...(shell === 'bash' ? ['bash'] : ['zsh']), ...words]
        const text = `${before}${script}\n${ask}`
        const { stdout } = await promisify(execFile)(shell, [...startup, '-c', text, ...arguments_], {
          env,
          cwd: '/',
        })
        return stdout.split('\n').filter((line) => line !== '')
      }
      expect(await asked('app', 'show', '')).to.deep.equal([String(app.app.id)])
      expect(await asked('ap')).to.have.members(['app', 'approval'])
    })
  }

  itRunsEveryForm('completion.test.ts')
})
