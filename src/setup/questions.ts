import { EMBEDDED, type AnswerKey, type Given } from './answers.ts'

export interface Question {
  readonly key: AnswerKey
  readonly text: string
  readonly choices?: readonly { readonly value: string; readonly name: string }[]
  /** It holds a password. */
  readonly isSecret?: boolean
  /** Whether it may be left empty. */
  readonly isOptional?: boolean
  /** Whether it is still open after the earlier answers. */
  readonly when?: (given: Given) => boolean
}

const isProxied = ({ proxy }: Given): boolean => proxy !== 'none'
const hasFiles = (given: Given): boolean => isProxied(given) && given['tls'] !== 'auto'

/** What `setup` asks for on a terminal, in this order. */
export const QUESTIONS: readonly Question[] = [
  { key: 'base_url', text: 'Public address, such as https://pay.example.com:' },
  { key: 'database', text: `Database: ${EMBEDDED}, or mysql://user:password@host:port/database:`, isSecret: true },
  { key: 'smtp_url', text: 'Mail server, such as smtps://user:password@smtp.example.com:', isSecret: true },
  { key: 'mail_from', text: 'Sender of mails, such as Billing <billing@example.com>:' },
  {
    key: 'proxy',
    text: 'What ends TLS in front?',
    choices: [
      { value: 'caddy', name: 'caddy: gets its certificate by itself' },
      { value: 'nginx', name: 'nginx: with a certificate by certbot' },
      { value: 'none', name: 'none: a proxy that is set up elsewhere' },
    ],
  },
  {
    key: 'tls',
    text: 'Which certificate?',
    choices: [
      { value: 'auto', name: 'auto: a new one from a public authority' },
      { value: '', name: 'files: one that is on this machine' },
    ],
    when: isProxied,
  },
  { key: 'cert_file', text: 'File of the certificate with its chain (PEM):', when: hasFiles },
  { key: 'key_file', text: 'File of its key (PEM):', when: hasFiles },
  { key: 'relay_address', text: "Mailbox of the banks' mails, such as bank+{code}@pay.example.com:", isOptional: true },
  { key: 'first_app', text: 'Name of the first app:', isOptional: true },
]
