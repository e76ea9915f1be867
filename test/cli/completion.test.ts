import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { before, describe, it } from 'mocha'
import { completionScript } from '#cli/completion.ts'
import { createProgram } from '#cli/program.ts'
import { itRunsEveryForm } from './forms.ts'
import { openCli } from './run-cli.ts'

describe('completion of the command line', function () {
  this.timeout(120_000)
  let script: string

  before(async () => {
    script = completionScript(await createProgram(), 'bash')
  })

  /** What bash offers for the last of the words. */
  async function offered(...words: string[]): Promise<string[]> {
    const quoted = words.map((word) => `'${word}'`).join(' ')
    const ask = `COMP_WORDS=(${quoted}); COMP_CWORD=${words.length - 1}; _billing_cli; printf '%s\\n' "\${COMPREPLY[@]}"`
    const { stdout } = await promisify(execFile)('bash', ['--norc', '-c', `${script}\n${ask}`])
    return stdout.split('\n').filter((line) => line !== '')
  }

  it('offers commands, then what belongs to the command, whatever stands between', async () => {
    expect(await offered('billing-cli', 'a')).to.deep.equal(['app', 'audit'])
    expect(await offered('billing-cli', 'app', '')).to.include.members(['create', 'rotate-secret', 'clock'])
    expect(await offered('billing-cli', '--json', 'app', 'rot')).to.deep.equal([
      'rotate-secret',
      'rotate-webhook-secret',
    ])
    expect(await offered('billing-cli', 'transaction', 'resolve', '17', '--d')).to.deep.equal(['--dry-run'])
    expect(await offered('billing-cli', 'help', 'pl')).to.deep.equal(['plan'])
  })

  it('offers files where an option takes one', async () => {
    expect(await offered('billing-cli', 'plan', 'create', '1', '--file', 'package.j')).to.deep.equal(['package.json'])
  })

  it('is what the program prints, and bash takes it', async () => {
    const { stdout } = await openCli().run(['completion', 'bash'])
    expect(stdout).to.equal(`${script}\n`)
    const { stdout: bound } = await promisify(execFile)('bash', ['--norc', '-c', `${stdout}complete -p billing-cli`])
    expect(bound).to.equal('complete -o default -F _billing_cli billing-cli\n')
    const zsh = await openCli().json(['completion', 'zsh'])
    expect(zsh.shell).to.equal('zsh')
    expect(zsh.script)
      .to.match(/bashcompinit\n/)
      .and.include(script)
  })

  itRunsEveryForm('completion.test.ts')
})
