import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Liquid, type Template } from 'liquidjs'
import type { Locale } from '#shared/locale.ts'

/** For each locale there are files under `templates/emails`: `<name>.<locale>.txt`, and `….html`, which `npm run docs` makes from `….mjml`. */
export type MailTemplate = 'renewal-reminder' | 'expired-notice' | 'receipt'
/** The values of a template's placeholders, and the lists that it repeats a part for. They are escaped in HTML. */
export type MailValues = Readonly<Record<string, string | number | boolean | readonly object[]>>

export interface RenderedMail {
  readonly subject: string
  readonly text: string
  readonly html: string
}

interface ParsedMail {
  readonly subject: Template[]
  readonly text: Template[]
  readonly html: Template[]
}

const FOLDER = join(import.meta.dirname, '../../templates/emails')
const TEST_NOTE = { en: 'sandbox app, no real money', vi: 'ứng dụng thử nghiệm, không thu tiền thật' } as const

// A placeholder without a value is an error of ours: better no mail than one with a gap.
const forHtml = new Liquid({ outputEscape: 'escape', strictVariables: true, strictFilters: true })
const forText = new Liquid({ strictVariables: true, strictFilters: true })

const parsedMails = new Map<string, Promise<ParsedMail>>()

/** One mail in one language. Each thread reads and parses a template once per locale. */
export async function renderMail(template: MailTemplate, locale: Locale, values: MailValues): Promise<RenderedMail> {
  const mail = await parseOnce(`${template}.${locale}`)
  const all = { ...values, locale, test_note: TEST_NOTE[locale] }
  const subject = oneLine(fill(forText, mail.subject, all))
  const text = fill(forText, mail.text, all)
  const html = fill(forHtml, mail.html, { ...all, subject, preview: previewOf(text) })
  return { subject, text, html }
}

const asWritten = forHtml.parse('<pre style="font: inherit; white-space: pre-wrap">{{ text }}</pre>')

/** A text as HTML that looks the same, line by line. */
export function htmlOf(text: string): string {
  return fill(forHtml, asWritten, { text })
}

function parseOnce(name: string): Promise<ParsedMail> {
  const known = parsedMails.get(name)
  if (known) return known
  const parsing = parse(name)
  parsedMails.set(name, parsing)
  parsing.catch(() => parsedMails.delete(name))
  return parsing
}

async function parse(name: string): Promise<ParsedMail> {
  const [html, words] = await Promise.all([readTemplate(`${name}.html`), readTemplate(`${name}.txt`)])
  const [subject = '', ...lines] = words.split('\n')
  return { subject: forText.parse(subject), text: forText.parse(lines.join('\n')), html: forHtml.parse(html) }
}

function readTemplate(file: string): Promise<string> {
  return readFile(join(FOLDER, file), 'utf8')
}

function fill(engine: Liquid, template: Template[], values: object): string {
  return engine.renderSync(template, values) as string
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
