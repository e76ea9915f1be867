import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'chai'
import type { Command } from 'commander'
import { describe, it } from 'mocha'
import { examplesOf } from '#cli/examples.ts'
import { createProgram, leadingWord } from '#cli/program.ts'
import { wrapCommand } from '#cli/wrap-lines.ts'
import { productVersion } from '#product-version.ts'
import { expectEveryCommandTested, leavesOf, wordsOf } from './forms.ts'
import { openCli } from './run-cli.ts'

/** A module that writes the name of each library that a file of ours imports. */
const NAMES_LIBRARIES = `data:text/javascript,${encodeURIComponent(`
  import { writeSync } from 'node:fs'
  import { registerHooks } from 'node:module'
  registerHooks({
    resolve(name, context, next) {
      const found = next(name, context)
      const isOurs = context.parentURL?.startsWith('file:') && !context.parentURL.includes('/node_modules/')
      if (isOurs && found.url.includes('/node_modules/')) writeSync(2, name + String.fromCharCode(10))
      return found
    },
  })
`)}`

describe("the command line's help", () => {
  it('explains every command and every option, and gives each command an example of its own', async () => {
    for (const { path, command } of leavesOf(await createProgram())) {
      const name = path.join(' ')
      expect(command.description(), name).not.to.equal('')
      for (const option of command.options) expect(option.description, `${name} ${option.flags}`).not.to.equal('')
      const examples = examplesOf(command)
      expect(examples, name).not.to.have.length(0)
      for (const example of examples) expect(example.startsWith(name), `${name}: ${example}`).to.equal(true)
    }
  })

  it('gives examples that the command line accepts', async () => {
    for (const { command } of leavesOf(await createProgram())) {
      for (const example of examplesOf(command)) {
        const reached: string[][] = []
        const program = await createProgram()
        for (const { command: leaf, path } of leavesOf(program)) leaf.action(() => void reached.push([...path]))
        await program.parseAsync(wordsOf(example), { from: 'user' })
        expect(reached, example).to.have.length(1)
      }
    }
  })

  it('breaks the examples for a terminal of 80 columns so that they can be copied', async () => {
    for (const { command } of leavesOf(await createProgram())) {
      for (const example of examplesOf(command)) {
        const lines = wrapCommand(`  $ billing-cli ${example}`, 80).split('\n')
        for (const line of lines) expect(line.length, line).to.be.at.most(80)
        const copied = lines.join('').replaceAll(' \\', '')
        expect(wordsOf(copied), example).to.deep.equal(['$', 'billing-cli', ...wordsOf(example)])
      }
    }
  })

  it('of each group and of each command fits a terminal of 80 columns', async () => {
    const all = (command: Command): Command[] => [command, ...command.commands.flatMap(all)]
    const wide = all(await createProgram()).flatMap((command) => {
      const help = command.createHelp()
      help.helpWidth = 80
      return help
        .formatHelp(command, help)
        .split('\n')
        .filter((line) => line.length > 80)
    })
    expect(wide).to.deep.equal([])
  })

  it('describes each group in the list of commands as the group describes itself', async () => {
    const whole = await createProgram()
    const listed = await createProgram('')
    const describedIn = (program: Command) => program.commands.map((child) => [child.name(), child.description()])
    expect(describedIn(listed)).to.deep.equal(describedIn(whole))
    const loaded = listed.commands.filter(({ commands }) => commands.length > 0)
    expect(loaded.map((child) => child.name())).to.deep.equal([])
  })

  it('lists the commands under our headings, none under that of commander', async () => {
    const { stdout } = await openCli().run(['--help'])
    const headings = stdout.split('\n').filter((line) => /^\S.*:$/.test(line))
    expect(headings).to.include.members(['Options:', 'Apps and plans:', 'Payments:', 'Service:'])
    expect(headings).not.to.include('Commands:')
  })

  it('lists reconcile, which looks up payments, under payments', async () => {
    const { stdout } = await openCli().run(['--help'])
    const [, payments = ''] = /^Payments:\n(.*?)\n\n/ms.exec(stdout) ?? []
    expect(payments).to.include('transaction').and.to.include('reconcile')
  })

  it('has the version of package.json beside it', async () => {
    const { version } = JSON.parse(readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8')) as {
      version: string
    }
    expect(await openCli().run(['--version'])).to.include({ code: 0, stdout: `${version}\n`, stderr: '' })
  })

  it('prints the version as one JSON value with --json', async () => {
    for (const words of ['--version --json', '--json --version']) {
      const { stdout } = await openCli().run(words.split(' '))
      expect(JSON.parse(stdout), words).to.deep.equal({ version: productVersion() })
    }
  })

  it('loads only the group that a command line is for', async () => {
    expect(leadingWord(['--json', 'app', 'list'])).to.equal('app')
    expect(leadingWord(['help', 'plan'])).to.equal('plan')
    expect(leadingWord(['--help'])).to.equal('')
    const program = await createProgram('price')
    const loaded = program.commands.filter(({ commands }) => commands.length > 0)
    expect(loaded.map((child) => child.name())).to.deep.equal(['plan', 'price'])
  })

  it('loads no library beside the one that reads the line', async () => {
    const main = join(import.meta.dirname, '../../src/cli/main.ts')
    const { stderr } = await promisify(execFile)(process.execPath, ['--import', NAMES_LIBRARIES, main, '--help'])
    const asked = stderr.split('\n').filter((name) => name !== '')
    expect([...new Set(asked)].sort()).to.deep.equal(['commander'])
  })

  it('has a test for every command', expectEveryCommandTested)

  it('has every command that scripts of operators rely on', async () => {
    const known = leavesOf(await createProgram()).map(({ path }) => path.join(' '))
    expect(known).to.include.members([
      ...['migrate', 'reconcile', 'doctor', 'ledger verify', 'reminders plan', 'realtime resync', 'audit list'],
      ...['create', 'list', 'show', 'update', 'disable', 'enable', 'clock'].map((verb) => `app ${verb}`),
      ...['rotate-secret', 'rotate-webhook-secret', 'set-identity', 'set-realtime'].map((verb) => `app ${verb}`),
      ...['enable', 'disable', 'list'].map((verb) => `method ${verb}`),
      ...['add', 'list', 'update', 'disable', 'assign'].map((verb) => `bank-account ${verb}`),
      ...['list', 'show', 'create', 'update', 'archive', 'restore'].map((verb) => `plan ${verb}`),
      ...['add', 'archive', 'restore'].map((verb) => `price ${verb}`),
      ...['bank-mail list', 'bank-mail match', 'bank-mail close', 'customer list', 'customer show'],
      ...['list', 'show', 'switch-plan', 'attach-customer', 'end'].map((verb) => `subscription ${verb}`),
      ...['list', 'show', 'resolve'].map((verb) => `transaction ${verb}`),
      ...['list', 'show', 'move', 'refund', 'close'].map((verb) => `payment ${verb}`),
      ...['list', 'retry', 'test'].map((verb) => `webhook ${verb}`),
    ])
  })
})
