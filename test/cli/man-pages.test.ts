import { spawnSync } from 'node:child_process'
import { globSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { createProgram } from '#cli/program.ts'
import { manPages } from '#cli/man-page.ts'
import { describeCommands, type DescribedGroup } from '#cli/reference.ts'

const ROOT = join(import.meta.dirname, '..', '..')

/** A page as `man` shows it on a wide terminal without colours, and what groff warns of. */
function shown(text: string): { readonly text: string; readonly warnings: string } {
  const { stdout, stderr } = spawnSync('groff', ['-man', '-ww', '-Tutf8', '-P-cbou', '-rLL=300n'], {
    input: text,
    encoding: 'utf8',
  })
  return { text: stdout, warnings: stderr }
}

async function pages() {
  const program = await createProgram()
  const groups = describeCommands(program)
  return { groups, pages: manPages(groups, program.options) }
}

describe('the man pages', () => {
  it('are those of the program and of each group, and no others', async () => {
    const { groups, pages: written } = await pages()
    const files = written.map(({ file }) => file)
    expect(globSync('*', { cwd: join(ROOT, 'man') })).to.have.members(files)
    const names = groups.flatMap(({ name }) => (name === null ? [] : [`billing-cli-${name}.1`]))
    expect(files).to.have.members(['billing-cli.1', ...names])
  })

  it('are understood by groff without a warning, and show each command with its options and examples', async () => {
    const { groups, pages: written } = await pages()
    for (const { file, text } of written) {
      const page = shown(text)
      expect(page.warnings, file).to.equal('')
      const name = file.replace(/^billing-cli-?|\.1$/g, '')
      const group = groups.find((each) => (each.name ?? '') === name)
      for (const { command, options, examples } of group?.commands ?? []) {
        expect(page.text, file).to.include(`billing-cli ${command}`)
        for (const { flags } of options) expect(page.text, command).to.include(flags)
        for (const example of examples) expect(page.text, command).to.include(example)
      }
    }
  })

  it('print text as it is, whatever roff would make of it', () => {
    const hostile = [`.so /etc/passwd`, `'br`, `a \\fBb\\fR "c" 'd' ^~\` -- 99.000 ₫`, '\\n(.k']
    const group: DescribedGroup = {
      name: 'x',
      description: 'y',
      commands: hostile.map((text) => ({
        command: 'x y',
        description: text,
        options: [{ flags: '--a <b>', description: text }],
        examples: [text],
      })),
    }
    const [, page] = manPages([group], [])
    const { text, warnings } = shown(page!.text)
    expect(warnings).to.equal('')
    for (const each of hostile) expect(text).to.include(`           ${each}\n`)
  })
})
