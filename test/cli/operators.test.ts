import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import fc from 'fast-check'
import { beforeEach, describe, it } from 'mocha'
import { approvals } from '#approvals/store.ts'
import { auditLog } from '#commands/store.ts'
import type { Context } from '#context.ts'
import { formatPermissions, permissionOf } from '#cli/permissions.ts'
import { createProgram } from '#cli/program.ts'
import { shellWord } from '#shared/shell-word.ts'
import { wordsOfLine } from '#cli/words-of-line.ts'
import { payments, refunds } from '#payments/store.ts'
import { transactions } from '#transactions/store.ts'
import { realTimeContext } from '../support/context.ts'
import { anApp, aPlan, paid, partlyPaid, priceId, type TestApp } from '../support/factories.ts'
import { unallocatedMoney } from '../support/review.ts'
import { scratchFolder } from '../support/scratch.ts'
import { itRunsEveryForm, leavesOf } from './forms.ts'
import { errorIn, openCli, PROGRAM, type Cli, type Ran } from './run-cli.ts'

describe('the command line: operators, their roles, and approvals', () => {
  let cli: Cli
  let ctx: Context
  let app: TestApp

  beforeEach(async () => {
    cli = openCli()
    ctx = realTimeContext()
    app = await anApp(ctx)
  })

  /** The command line that an operator's ssh asks for. */
  const asked = (name: string, line: string, settings: Record<string, string> = {}): Promise<Ran> =>
    openCli({ SSH_ORIGINAL_COMMAND: line, ...settings }).run([
      'as',
      name,
      ...(line.includes('--json') ? ['--json'] : []),
    ])

  const expectForbidden = async (name: string, line: string): Promise<string> => {
    const ran = await asked(name, line)
    expect(ran.code, `${line}: ${ran.stdout}${ran.stderr}`).to.equal(1)
    expect(ran.stdout, line).to.equal('')
    expect(ran.stderr, line).to.include('forbidden')
    return ran.stderr
  }

  const newestTransaction = async (): Promise<number> =>
    (await ctx.db.one(transactions, 'ORDER BY id DESC LIMIT 1'))!.id

  const anOperator = (name: string, role: string): Promise<unknown> =>
    cli.json(['operator', 'add', name, '--role', role])

  it('operator add prints the one line of authorized_keys by which the key runs this program alone', async () => {
    const file = join(scratchFolder('keys'), 'linh')
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'linh@laptop', '-f', file])
    const added = await cli.json(['operator', 'add', 'linh', '--role', 'support', '--ssh-key', `${file}.pub`])
    const key = readFileSync(`${file}.pub`, 'utf8').trim()
    expect(added).to.deep.equal({
      name: 'linh',
      role: 'support',
      authorized_keys: `command="${PROGRAM} as linh",restrict,pty ${key}`,
    })
    const shown = await cli.table(['operator', 'add', 'minh', '--role', 'view'])
    expect(shown).to.include('as minh",restrict,pty')
    const { value, text } = await cli.both(['operator', 'list'])
    expect(value.map((row: { name: string; role: string }) => [row.name, row.role])).to.deep.equal([
      ['linh', 'support'],
      ['minh', 'view'],
    ])
    expect(text).to.include('support')
    expect(await cli.json(['operator', 'set-role', 'linh', 'money'])).to.deep.equal({ name: 'linh', role: 'money' })
    await cli.table(['operator', 'set-role', 'linh', 'support'])
    expect(await cli.json(['operator', 'remove', 'minh'])).to.deep.equal({ name: 'minh', role: 'view' })
    await cli.table(['operator', 'remove', 'linh'])
    const audit = await ctx.db.all(auditLog, "WHERE action LIKE 'operator.%' ORDER BY id")
    expect(audit.map(({ action }) => action)).to.deep.equal([
      ...['operator.add', 'operator.add', 'operator.set-role', 'operator.set-role'],
      ...['operator.remove', 'operator.remove'],
    ])
  })

  it('operator add refuses a name or a key that would widen the line, a private key, and a name that is taken', async () => {
    const folder = scratchFolder('keys')
    const file = (name: string, text: string): string => {
      writeFileSync(join(folder, name), text)
      return join(folder, name)
    }
    await anOperator('linh', 'view')
    const add = (name: string, ...more: string[]) => ['operator', 'add', name, '--role', 'view', ...more]
    const good = `ssh-ed25519 ${'A'.repeat(68)} x`
    await cli.expectErrors(
      [1, add('linh'), 'is an operator already'],
      [1, add('Linh'), 'error: <name>: must be'],
      [1, add('a" ,command="sh'), '<name>'],
      [1, add('a', '--ssh-key', file('options', `command="sh" ${good}`)), 'one public key'],
      [1, add('a', '--ssh-key', file('two', `${good}\n${good}`)), 'one public key'],
      [
        1,
        add('a', '--ssh-key', file('private', '-----BEGIN OPENSSH PRIVATE KEY-----\n')),
        '--ssh-key: is a private key',
      ],
      [1, ['operator', 'set-role', 'nobody', 'view'], 'not found'],
      [1, ['operator', 'remove', 'nobody'], 'not found'],
      [2, ['operator', 'add', 'a', '--role', 'root'], '--role'],
      [2, ['operator', 'set-role', 'linh', 'root'], '<role> must be one of view, support, money, owner'],
    )
    expect(await cli.json(['operator', 'list'])).to.have.length(1)
  })

  it('every command has a permission, docs/operators.md names its role, and nothing else has one', async () => {
    const commands = leavesOf(await createProgram()).map(({ path }) => path.join(' '))
    const permitted = [...formatPermissions().matchAll(/^\| `([^`]+)`/gm)].map(([, command]) => command)
    expect(permitted.sort()).to.deep.equal(commands.sort())
    const documented = readFileSync('docs/operators.md', 'utf8')
    for (const command of commands) {
      const { role, more = [] } = permissionOf(command)
      const row = documented.split('\n').find((line) => line.startsWith(`| \`${command}\` |`))
      for (const part of [role, ...more.flatMap(({ shown, role: needed }) => [shown, needed])])
        expect(row).to.include(part)
    }
  })

  it('as runs the line that ssh asked for with the role and the name of the operator', async () => {
    await anOperator('linh', 'support')
    await partlyPaid(ctx, app, { price_id: priceId(await aPlan(ctx, app)) })
    expect((await asked('linh', 'transaction list')).stdout).to.include('user-1')
    const shown = await asked('linh', 'transaction list --json')
    const [row] = JSON.parse(shown.stdout) as { transaction_id: number }[]
    expect(shown.code).to.equal(0)
    const resolve = `transaction resolve ${row!.transaction_id} --yes --note 'short by the "fee"'`
    const done = await asked('linh', `${resolve} --action complete --json`)
    expect(done.code, done.stderr).to.equal(0)
    const entry = await ctx.db.one(auditLog, "WHERE action = 'transaction.resolve.complete'")
    expect(entry).to.include({ actor: 'linh', reason: 'short by the "fee"' })
  })

  it('a role may do what it is for, and nothing beyond it, by the options that take effect', async () => {
    for (const role of ['view', 'support', 'money', 'owner']) await anOperator(role, role)
    expect((await asked('view', 'backup list --json')).code).to.equal(0)
    await expectForbidden('view', 'backup verify')
    await paid(ctx, app, { price_id: priceId(await aPlan(ctx, app)) })
    const id = String(await newestTransaction())
    await expectForbidden('view', `transaction resolve ${id} --action dismiss --note n --yes`)
    await expectForbidden('view', 'webhook retry evt_1')
    await expectForbidden('view', 'console --write')
    await expectForbidden('view', 'reminders refused --retry')
    await expectForbidden('view', 'app export 1 --dir /tmp/x')
    await expectForbidden('support', `transaction resolve ${id} --action refund --reference FT9 --note n --yes`)
    await expectForbidden('support', `transaction resolve ${id} --action dismiss --action refund --note n --yes`)
    await expectForbidden('support', `transaction resolve ${id} --action=refund --note n --dry-run`)
    await expectForbidden('support', 'payment refund 1 --note n --yes')
    await expectForbidden('support', 'payment move 1 2 --note n --yes')
    await expectForbidden('support', `subscription end ${app.app.id} user-1 --note n`)
    await expectForbidden('support', `subscription import ${app.app.id} /etc/passwd`)
    await expectForbidden('support', `app export ${app.app.id} --out=/tmp/x`)
    await expectForbidden('support', 'listen 1 --forward-to http://127.0.0.1:1')
    await expectForbidden('support', `transaction resolve ${id} --action=dismiss --action=refund --note n --yes`)
    await expectForbidden('view', `subscription end ${app.app.id} user-1 --note n`)
    await expectForbidden('money', 'operator add eve --role owner')
    await expectForbidden('money', 'key rotate')
    await expectForbidden('money', `plan create ${app.app.id} --file /etc/passwd`)
    await expectForbidden('nobody', 'app list')
    expect((await asked('view', 'app list --json')).code).to.equal(0)
    expect(
      (await asked('support', `transaction resolve ${id} --action refund --action dismiss --note n --yes`)).stderr,
    ).not.to.include('forbidden')
    const refund = `transaction resolve ${id} --action refund --reference FT9 --note n --yes --json`
    expect((await asked('money', refund)).code).to.equal(0)
    expect((await asked('owner', 'operator list --json')).code).to.equal(0)
  })

  it('the role is checked before the rest of the line is read', async () => {
    await anOperator('linh', 'view')
    await expectForbidden('linh', 'payment refund --no-such-option')
    await expectForbidden('linh', '--json payment refund')
    await expectForbidden('linh', 'payment refund 1 2 3 4')
    await expectForbidden('linh', 'payment refund 1 --note --help --yes')
    const json = await asked('linh', 'payment refund 1 --json')
    expect(JSON.parse(json.stderr)).to.deep.equal({
      error: { code: 'forbidden', message: 'forbidden: payment refund needs the role money, and yours is view' },
    })
    expect((await asked('linh', 'payment refund --help')).stdout).to.include('Usage')
  })

  it('as inside as, the hidden command of completion, and what only a shell understands are forbidden', async () => {
    await anOperator('root', 'owner')
    await anOperator('linh', 'owner')
    for (const line of [
      'as root',
      '--json as root',
      'as linh --help',
      'as linh -h',
      '--help as linh',
      'as --help',
      'complete app',
      'app list; id',
      'app list && id',
      'app list | sh',
      'app list > /tmp/out',
      'app show $HOME',
      'app show $(id)',
      'app show *',
      'app list\nid',
      'app list\r\nid',
      'app list\u0000id',
      'app list # more',
    ])
      await expectForbidden('linh', line)
  })

  it('as takes a name and no further word: anything else is wrong usage', async () => {
    await anOperator('linh', 'owner')
    const sshCli = openCli({ SSH_ORIGINAL_COMMAND: 'app list' })
    for (const words of [['app', 'list'], ['--write'], ['minh'], ['minh', '--json']])
      expect((await sshCli.run(['as', 'linh', ...words])).code, words.join(' ')).to.equal(2)
    expect((await sshCli.run(['as', 'linh', '--help'])).stdout).to.include('Usage: billing-cli as')
    expect((await sshCli.run(['as', 'linh', '--json'])).code).to.equal(0)
  })

  it('quotes and backslashes are understood as a shell does, and nothing is expanded', () => {
    expect(wordsOfLine(`a "b c" 'it'"'"'s' d\\ e "" '$5 *;' "x \\" y"`)).to.deep.equal([
      ...['a', 'b c', "it's", 'd e', '', '$5 *;', 'x " y'],
    ])
    expect(wordsOfLine('find `id` ~ é')).to.deep.equal(['find', '`id`', '~', 'é'])
    for (const line of ['find "$5"', 'find $5', String.raw`find $'a\nb'`])
      expect(() => wordsOfLine(line), line).to.throw('single quotes')
  })

  it('a line that a shell would wait for more of is refused: an open quote, a backslash at the end', () => {
    for (const line of [`find 'nope`, 'app list "', `note --text 'payer's fee'`, 'find "a\\" b', 'find a\\', '\\'])
      expect(() => wordsOfLine(line), line).to.throw('not complete')
    expect(wordsOfLine(`note "payer's fee" 'a"b' c\\'d`)).to.deep.equal(['note', "payer's fee", 'a"b', "c'd"])
  })

  it('the words that the console sends over SSH arrive as they were typed', () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.string().filter((word) => !/\p{Cc}/u.test(word)),
          { minLength: 1 },
        ),
        (words) => {
          expect(wordsOfLine(words.map(shellWord).join(' '))).to.deep.equal(words)
        },
      ),
      { examples: [[['why?', "it's", 'PG7K*', '$5', "a\\'b", '']]] },
    )
  })

  it('with --json an error is JSON on standard error with a code of the API', async () => {
    const failing = async (...words: string[]) => {
      const ran = await cli.run([...words, '--json'])
      expect(ran.stdout).to.equal('')
      return [ran.code, errorIn(ran).code]
    }
    expect(await failing('transaction', 'show', '999')).to.deep.equal([1, 'not_found'])
    expect(await failing('transaction', 'show', 'x')).to.deep.equal([2, 'invalid_request'])
    expect(await failing('transaction', 'show', '1', '--bogus')).to.deep.equal([2, 'invalid_request'])
    expect(await failing('bogus')).to.deep.equal([2, 'invalid_request'])
    expect(await failing('operator', 'add', 'X', '--role', 'view')).to.deep.equal([1, 'invalid_request'])
    const nobody = await openCli({ SSH_ORIGINAL_COMMAND: 'app list --json' }).run(['as', 'nobody'])
    expect([nobody.code, errorIn(nobody).code]).to.deep.equal([1, 'forbidden'])
    const away = openCli({ BILLING_DATABASE_URL: 'mysql://root@127.0.0.1:1/paygate' })
    const ran = await away.run(['app', 'list', '--json'])
    expect(errorIn(ran).code).to.equal('service_unavailable')
  })

  const limited = () => openCli({ BILLING_REFUND_LIMIT: '50000:VND,200:USD' })

  const aRefund = async (): Promise<{ id: string; words: string[] }> => {
    if ((await cli.json(['operator', 'list'])).length === 0)
      for (const name of ['linh', 'minh']) await anOperator(name, 'money')
    await paid(ctx, app, { price_id: priceId(await aPlan(ctx, app)) })
    const id = String(await newestTransaction())
    const words = ['transaction', 'resolve', id, '--action', 'refund', '--reference', `FT${id}`, '--note', 'paid twice']
    return { id, words: [...words, '--yes'] }
  }
  const openId = async (): Promise<number> =>
    (await limited().json(['approval', 'list'])).find((row) => row.status === 'open')!.id
  const refundsOf = async () => (await ctx.db.all(refunds, '')).map(({ amount }) => ({ amount }))
  const granted = (id: number, name = 'minh') =>
    asked(name, `approval grant ${id} --note checked --yes --json`, { BILLING_REFUND_LIMIT: '50000:VND' })

  it('a refund above the limit is stored, exits 1 and moves nothing; another operator makes it', async () => {
    const { id, words } = await aRefund()
    const refused = await limited().refused(words)
    expect(refused).to.include('BILLING_REFUND_LIMIT').and.include('approval grant')
    await limited().refused(words)
    expect(await refundsOf()).to.deep.equal([])
    const { value, text } = await limited().both(['approval', 'list'])
    expect(value).to.have.length(1)
    expect(value[0]).to.have.all.keys(
      ...['id', 'requested_by', 'requested_at', 'command', 'transaction_id', 'amount', 'currency', 'status'],
    )
    expect(value[0]).to.include({ transaction_id: Number(id), amount: 99_000, currency: 'VND', status: 'open' })
    expect(value[0]!.command).to.equal(
      `transaction resolve ${id} --action refund --reference FT${id} --note 'paid twice'`,
    )
    expect(text).to.match(/\[TEST\] \d+ .* open/)
    const shown = await limited().both(['approval', 'show', String(value[0]!.id)])
    expect(shown.value.effects.join()).to.include('₫99,000')
    expect(shown.text).to.match(/^\[TEST\] Reader \(app \d+\)\n/)
    const done = await granted(value[0]!.id)
    expect(done.code, done.stderr).to.equal(0)
    expect(JSON.parse(done.stdout)).to.include({ status: 'granted', decided_by: 'minh' })
    expect(await refundsOf()).to.deep.equal([{ amount: 99_000 }])
    expect((await granted(value[0]!.id)).stderr).to.include('is granted')
    expect(await refundsOf()).to.have.length(1)
  })

  it('whoever asked cannot grant, under sudo neither', async () => {
    const { words } = await aRefund()
    const settings = { BILLING_REFUND_LIMIT: '50000:VND' }
    const line = words.map((word) => `'${word}'`).join(' ')
    expect((await asked('linh', line, settings)).code).to.equal(1)
    const id = await openId()
    const own = await granted(id, 'linh')
    expect([own.code, errorIn(own).code]).to.deep.equal([1, 'forbidden'])
    await ctx.db.update(approvals, { requestedBy: 'linh' }, { requestedBy: 'linh (sudo)' })
    expect((await granted(id, 'linh')).code).to.equal(1)
    expect(await refundsOf()).to.deep.equal([])
    const grant = ['approval', 'grant', String(id), '--note', 'checked', '--yes']
    expect(await limited().table([...grant, '--dry-run'])).to.include('would change')
    expect(await refundsOf()).to.deep.equal([])
    expect(await limited().json(grant)).to.include({ status: 'granted' })
    expect(await refundsOf()).to.have.length(1)
  })

  it('the refunds of one transaction count together, and of another currency not at all', async () => {
    const { id } = await aRefund()
    const part = (reference: string, amount: string) => [
      'transaction',
      'resolve',
      id,
      '--action',
      'refund',
      '--amount',
      amount,
      '--reference',
      reference,
      '--note',
      'n',
      '--yes',
    ]
    await limited().json(part('A', '30000'))
    await limited().json(part('B', '20000'))
    await limited().refused(part('C', '1'))
    expect(await refundsOf()).to.have.length(2)
    await openCli({ BILLING_REFUND_LIMIT: '1:USD' }).json(part('C', '1'))
  })

  it('money that is booked for nothing has the limit, too', async () => {
    const { id } = await aRefund()
    const payment = (await ctx.db.one(payments, ''))!
    await ctx.db.update(payments, { id: payment.id }, { amountLeft: 99_000 })
    const refund = ['payment', 'refund', String(payment.id), '--reference', 'FT1', '--note', 'n', '--yes']
    const preview = await limited().table([...refund, '--dry-run'])
    expect(preview)
      .to.match(/approval: - → it waits for another operator/)
      .and.not.include('payment_id')
    await limited().refused(refund)
    expect(await refundsOf()).to.deep.equal([])
    const [row] = await limited().json(['approval', 'list'])
    expect(row).to.include({ transaction_id: null, amount: 99_000 })
    expect(row!.command).to.equal(`payment refund ${payment.id} --reference FT1 --note n`)
    expect((await granted(row!.id)).code).to.equal(0)
    expect(await refundsOf()).to.deep.equal([{ amount: 99_000 }])
    expect(Number(id)).to.be.greaterThan(0)
  })

  it('the refunds of one payment that is booked for nothing count together', async () => {
    await aRefund()
    const { id } = (await ctx.db.one(payments, ''))!
    await ctx.db.update(payments, { id }, { amountLeft: 99_000 })
    const part = (reference: string, amount: string) => [
      ...['payment', 'refund', String(id), '--amount', amount, '--reference', reference, '--note', 'n', '--yes'],
    ]
    await limited().json(part('A', '30000'))
    await limited().json(part('B', '20000'))
    await limited().refused(part('C', '1'))
    expect(await refundsOf()).to.have.length(2)
  })

  it('a request is stale once what it is about has changed, and denied for good by approval deny', async () => {
    const first = await aRefund()
    await limited().refused(first.words)
    await cli.json([
      'transaction',
      'resolve',
      first.id,
      '--action',
      'refund',
      '--amount',
      '1000',
      '--reference',
      'X',
      '--note',
      'n',
      '--yes',
    ])
    const stale = await granted(await openId())
    expect([stale.code, errorIn(stale).message]).to.satisfy(
      ([code, message]: [number, string]) => code === 1 && message.includes('stale'),
    )
    const second = await aRefund()
    await limited().refused(second.words)
    const open = await openId()
    await cli.table(['approval', 'deny', String(open), '--note', 'in cash', '--dry-run'])
    await cli.json(['approval', 'deny', String(open), '--note', 'in cash', '--yes'])
    await cli.refused(['approval', 'deny', String(open), '--note', 'again', '--yes'])
    expect((await granted(open)).code).to.equal(1)
    const rows = await limited().json(['approval', 'list'])
    expect(rows.map((row) => row.status)).to.have.members(['stale', 'denied'])
    expect(await refundsOf()).to.deep.equal([{ amount: 1000 }])
  })

  it('a request is stale once nothing is left of the payment that it is about', async () => {
    await anOperator('minh', 'money')
    const paymentId = String(await unallocatedMoney(ctx, app, 70_000))
    const words = ['payment', 'refund', paymentId, '--reference', 'FT-1', '--note', 'n', '--yes']
    await limited().refused(words)
    await cli.json(words)
    const stale = await granted(await openId())
    expect([stale.code, errorIn(stale).message]).to.satisfy(
      ([code, message]: [number, string]) => code === 1 && message.includes('stale'),
    )
    expect((await limited().json(['approval', 'list'])).map((row) => row.status)).to.deep.equal(['stale'])
  })

  it('a request with a note of quotation marks alone is refused with what to do, and the longest note of words is kept', async () => {
    const { words } = await aRefund()
    const noting = (note: string) => limited().refused(words.map((word) => (word === 'paid twice' ? note : word)))
    expect(await noting("'".repeat(500))).to.include('note: has too many quotation marks: shorten it')
    expect(await noting('paid twice '.repeat(46).slice(0, 500))).to.include('waits for another operator')
  })

  it('a dry run says that the refund would wait, and stores nothing', async () => {
    const { words } = await aRefund()
    const dry = await limited().preview(words)
    expect(dry.effects.at(-1)).to.include('waits for another operator')
    expect(await limited().json(['approval', 'list'])).to.deep.equal([])
  })

  it('a limit of the wrong form is refused at the start', async () => {
    for (const limit of ['5000000', '5:vnd', '1.5:VND', 'x:USD'])
      expect((await openCli({ BILLING_REFUND_LIMIT: limit }).run(['app', 'list'])).stderr, limit).to.include(
        'BILLING_REFUND_LIMIT must be',
      )
  })

  itRunsEveryForm('operators.test.ts')
})
