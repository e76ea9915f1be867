import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** From the root of the project. */
const FOLDER = 'templates/emails'
const ROOT = join(import.meta.dirname, '..')
const LAYOUT = 'layout.mjml'
/** The colour of links and buttons in the MJML, in whose place each app has its own. */
const ACCENT = '#1b5fc1'

/** A mail in one language, such as `receipt.en`. */
interface MailHtml {
  /** From the root of the project. */
  readonly file: string
  /** HTML with placeholders, which the service fills. */
  readonly render: () => Promise<string>
}

/**
 * The HTML of every mail, made from its MJML. The service reads only this HTML, since MJML takes 0.7 s of processor time and 80 MB in
 * every process that sends.
 */
export function mailHtmls(): MailHtml[] {
  return readdirSync(join(ROOT, FOLDER))
    .filter((file) => file.endsWith('.mjml') && file !== LAYOUT)
    .map((file) => ({ file: `${FOLDER}/${file.replace(/mjml$/, 'html')}`, render: () => htmlOf(file) }))
}

async function htmlOf(file: string): Promise<string> {
  const mjml = readTemplate(LAYOUT).replace('<!-- content -->', () => readTemplate(file))
  // Here, because the benchmarks load this file, too.
  const { default: mjml2html } = await import('mjml')
  const { html } = await mjml2html(mjml, { validationLevel: 'strict' })
  return html.replaceAll(ACCENT, '<%= accent %>')
}

function readTemplate(file: string): string {
  return readFileSync(join(ROOT, FOLDER, file), 'utf8')
}
