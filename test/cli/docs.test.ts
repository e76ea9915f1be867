import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { createProgram } from '#cli/program.ts'
import { describeCommands, formatReference } from '#cli/reference.ts'
import { itRunsEveryForm } from './forms.ts'
import { openCli } from './run-cli.ts'

const REFERENCE = join(import.meta.dirname, '..', '..', 'docs', 'cli.md')

describe('the reference of the command line', () => {
  it('in docs/cli.md is what billing-cli docs prints (npm run docs writes it)', async () => {
    const { stdout } = await openCli().run(['docs'])
    const documented = /<!-- cli:start -->\n([\s\S]*)<!-- cli:end -->/.exec(readFileSync(REFERENCE, 'utf8'))?.[1]
    expect(documented).to.equal(stdout)
  })

  it('has every command with an example, also as JSON', async () => {
    const printed = await openCli().json(['docs'])
    const groups = describeCommands(await createProgram())
    expect(printed).to.deep.equal(groups)
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

  itRunsEveryForm('docs.test.ts')
})
