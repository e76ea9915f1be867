import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Liquid, type Template } from 'liquidjs'

/** Languages of mails (R50). */
export type MailLocale = 'en' | 'vi'
/** For each locale a pair of files, `<name>.<locale>.mjml` and `<name>.<locale>.txt`, under `templates/emails`. */
export type MailTemplate = 'renewal-reminder' | 'expired-notice' | 'receipt'
/** The values of a template's placeholders. They are escaped in HTML. */
export type MailValues = Readonly<Record<string, string | number | boolean>>

export interface RenderedMail {
  readonly subject: string
  readonly text: string
  readonly html: string
}

interface CompiledMail {
  readonly subject: Template[]
  readonly text: Template[]
  readonly html: Template[]
}

const FOLDER = join(import.meta.dirname, '../../templates/emails')
/** The texts of the layout. */
const WORDS = {
  en: { test_note: 'sandbox app, no real money', support: 'Help', terms: 'Terms', privacy: 'Privacy' },
  vi: {
    test_note: 'ứng dụng thử nghiệm, không thu tiền thật',
    support: 'Hỗ trợ',
    terms: 'Điều khoản',
    privacy: 'Quyền riêng tư',
  },
} as const
/** The colour of links and buttons in the templates, which is replaced by the app's own. */
const ACCENT = '#1b5fc1'

// A placeholder without a value is an error of ours: better no mail than one with a gap.
const forHtml = new Liquid({ outputEscape: 'escape', strictVariables: true, strictFilters: true })
const forText = new Liquid({ strictVariables: true, strictFilters: true })

const compiledMails = new Map<string, Promise<CompiledMail>>()

/**
 * One mail in one language. Each thread runs MJML once per template and locale, which takes 0.4 s and 80 MB; filling the result takes
 * microseconds.
 */
export async function renderMail(
  template: MailTemplate,
  locale: MailLocale,
  values: MailValues,
): Promise<RenderedMail> {
  const compiled = await compileOnce(template, locale)
  const all = { ...values, locale, words: WORDS[locale] }
  const subject = oneLine(fill(forText, compiled.subject, all))
  const text = fill(forText, compiled.text, all)
  const html = fill(forHtml, compiled.html, { ...all, subject, preview: previewOf(text) })
  return { subject, text, html }
}

function compileOnce(template: MailTemplate, locale: MailLocale): Promise<CompiledMail> {
  const name = `${template}.${locale}`
  const known = compiledMails.get(name)
  if (known) return known
  const compiling = compile(name)
  compiledMails.set(name, compiling)
  compiling.catch(() => compiledMails.delete(name))
  return compiling
}

async function compile(name: string): Promise<CompiledMail> {
  const [layout, content, words] = await Promise.all([
    readTemplate('layout.mjml'),
    readTemplate(`${name}.mjml`),
    readTemplate(`${name}.txt`),
  ])
  const { default: mjml2html } = await import('mjml')
  const { html } = await mjml2html(
    layout.replace('<!-- content -->', () => content),
    { validationLevel: 'strict' },
  )
  const [subject = '', ...lines] = words.split('\n')
  return {
    subject: forText.parse(subject),
    text: forText.parse(lines.join('\n')),
    html: forHtml.parse(html.replaceAll(ACCENT, '{{ accent }}')),
  }
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
