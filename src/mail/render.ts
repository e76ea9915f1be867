import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { TemplateFunction } from 'eta'
import type { Locale } from '#shared/locale.ts'
import { templateEngine } from '#shared/template-engine.ts'

/** For each locale there are files under `templates/emails`: `<name>.<locale>.txt`, and `….html`, which `npm run docs` makes from `….mjml`. */
export type MailTemplate = 'renewal-reminder' | 'expired-notice' | 'receipt'
/** The values of a template's placeholders, and the lists that it repeats a part for. They are escaped in HTML. */
export type MailValues = Readonly<Record<string, string | number | boolean | readonly object[]>>

export interface RenderedMail {
  readonly subject: string
  readonly text: string
  readonly html: string
}

interface CompiledMail {
  readonly subject: TemplateFunction
  readonly text: TemplateFunction
  readonly html: TemplateFunction
}

const FOLDER = join(import.meta.dirname, '../../templates/emails')
const TEST_NOTE = { en: 'sandbox app, no real money', vi: 'ứng dụng thử nghiệm, không thu tiền thật' } as const

const forHtml = templateEngine({ escapes: true })
const forText = templateEngine({ escapes: false })

const compiledMails = new Map<string, Promise<CompiledMail>>()

/** One mail in one language. Each thread reads and compiles a template once per locale. */
export async function renderMail(template: MailTemplate, locale: Locale, values: MailValues): Promise<RenderedMail> {
  const mail = await compileOnce(`${template}.${locale}`)
  const all = { ...values, locale, test_note: TEST_NOTE[locale] }
  const subject = oneLine(forText.render(mail.subject, all))
  const text = forText.render(mail.text, all)
  const html = forHtml.render(mail.html, { ...all, subject, preview: previewOf(text) })
  return { subject, text, html }
}

const asWritten = forHtml.compile('<pre style="font: inherit; white-space: pre-wrap"><%= text %></pre>')

/** A text as HTML that looks the same, line by line. */
export function htmlOf(text: string): string {
  return forHtml.render(asWritten, { text })
}

function compileOnce(name: string): Promise<CompiledMail> {
  const known = compiledMails.get(name)
  if (known) return known
  const compiling = compile(name)
  compiledMails.set(name, compiling)
  compiling.catch(() => compiledMails.delete(name))
  return compiling
}

async function compile(name: string): Promise<CompiledMail> {
  const [html, words] = await Promise.all([readTemplate(`${name}.html`), readTemplate(`${name}.txt`)])
  const [subject = '', ...lines] = words.split('\n')
  return {
    subject: forText.compile(subject),
    text: forText.compile(lines.join('\n')),
    html: forHtml.compile(html),
  }
}

function readTemplate(file: string): Promise<string> {
  return readFile(join(FOLDER, file), 'utf8')
}

/** A header value must not contain a line break. */
function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim()
}

/** What mail programs show beside the subject: the first paragraph after the greeting. */
function previewOf(text: string): string {
  const paragraphs = text.split(/\n\n+/)
  const greeting = paragraphs.findIndex((paragraph) => /^(Hello|Xin chào)( .*)?,$/.test(paragraph))
  return oneLine(paragraphs[greeting + 1] ?? '')
}
