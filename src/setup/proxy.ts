import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '#config/config.ts'
import { daemonUrl } from '#doctor/ask-metrics.ts'
import { AppError } from '#shared/errors.ts'
import { addressOf, type Answers } from './answers.ts'
import { isInstalled, readInstalled, writeInstalled, type InstalledFile } from './files.ts'
import { hasProgram, isUnitActive, runProgram } from './run-program.ts'
import { pending, unchanged, type PartState } from './step.ts'

const TEMPLATES = join(import.meta.dirname, '../../templates/proxy')
const MARK = '# Written by billing-cli setup.\n'
/** The beginning of Debian's own sample, which may be overwritten. */
const SAMPLE = '# The Caddyfile is an easy way'
const NGINX_FILE = '/etc/nginx/conf.d/paygate.conf'
const CADDY_FILE = '/etc/caddy/Caddyfile'

/** The configuration of the proxy; null without one. */
export function proxyFile(answers: Answers, backend: Pick<Config, 'host' | 'port'>): InstalledFile | null {
  if (answers.proxy === 'none') return null
  const isCaddy = answers.proxy === 'caddy'
  const text = isCaddy ? caddyfile(answers) : nginxConf(answers)
  const content = MARK + text.replaceAll('127.0.0.1:8080', daemonUrl(backend).replace('http://', ''))
  return { path: isCaddy ? CADDY_FILE : NGINX_FILE, content, mode: 0o644 }
}

function caddyfile({ baseUrl, certificate }: Answers): string {
  const tls = certificate ? `  tls ${certificate.certFile} ${certificate.keyFile}\n` : ''
  return template('Caddyfile').replace('@SITE@ {\n', `${baseUrl.host} {\n${tls}`)
}

function nginxConf({ baseUrl, certificate }: Answers): string {
  const folder = certificateFolder(baseUrl.hostname)
  const values: Readonly<Record<string, string>> = {
    HOST: baseUrl.hostname,
    PORT: baseUrl.port || '443',
    CERTIFICATE: certificate?.certFile ?? `${folder}/fullchain.pem`,
    KEY: certificate?.keyFile ?? `${folder}/privkey.pem`,
  }
  return template('nginx.conf').replace(/@([A-Z]+)@/g, (whole, name: string) => values[name] ?? whole)
}

/** Where certbot keeps the certificates of a name. */
const certificateFolder = (host: string): string => `/etc/letsencrypt/live/${host}`

function template(name: string): string {
  return readFileSync(join(TEMPLATES, name), 'utf8')
}

/** Checks the file of the proxy. Never overwrites other sites. */
export function inspectProxyFile(prefix: string, answers: Answers, config: Config): PartState {
  const file = proxyFile(answers, config)
  if (file === null) return unchanged('no proxy: TLS ends elsewhere')
  if (isInstalled(prefix, file)) return unchanged(file.path)
  const present = readInstalled(prefix, file.path)
  if (present !== null && !present.startsWith(MARK) && !present.startsWith(SAMPLE))
    throw new AppError(
      'invalid_request',
      `${file.path} has sites of its own: add the one of docs/operating.md yourself, and answer proxy=none`,
    )
  return pending(`write ${file.path}`, () => {
    writeInstalled(prefix, file)
    return `wrote ${file.path}`
  })
}

/** Checks the certificate, which nginx does not get by itself. */
export function inspectCertificate(answers: Answers): PartState {
  const { hostname } = answers.baseUrl
  const file = join(certificateFolder(hostname), 'fullchain.pem')
  if (readInstalled('', file) !== null) return unchanged(file)
  return pending(`get a certificate for ${hostname} by certbot`, async () => {
    await runProgram('certbot', certbotWords(answers))
    return file
  })
}

/** nginx reads a renewed certificate only after a reload. */
export function certbotWords({ baseUrl, mailFrom }: Answers): string[] {
  const how = ['--nginx', '--non-interactive', '--agree-tos', '--deploy-hook', 'systemctl reload nginx']
  return ['certonly', ...how, '-m', addressOf(mailFrom), '--cert-name', baseUrl.hostname, '-d', baseUrl.hostname]
}

/** Checks that the proxy accepts the file and runs with it. `isFileNew`: it has not loaded the file yet. */
export async function inspectProxyService(
  { proxy }: Answers,
  { isFileNew }: { readonly isFileNew: boolean },
): Promise<PartState> {
  const isActive = await isUnitActive(proxy)
  if (isActive && !isFileNew) return unchanged(`${proxy} runs`)
  return pending(`${isActive ? 'reload' : 'start'} ${proxy}`, async () => {
    await validate(proxy)
    await runProgram('systemctl', ['enable', '--now', proxy])
    await runProgram('systemctl', ['reload', proxy])
    return `${proxy} runs with it`
  })
}

/** As its own user, who must be able to read the key. */
async function validate(proxy: Answers['proxy']): Promise<void> {
  if (proxy === 'nginx') await runProgram('nginx', ['-t'])
  else await runProgram('runuser', ['-u', 'caddy', '--', 'caddy', 'validate', '--config', CADDY_FILE])
}

/** The programs that the answers need, and the packages of those that are missing. */
export function missingPackages(answers: Answers): string[] {
  const needed: readonly (readonly [isNeeded: boolean, program: string, packages: readonly string[]])[] = [
    [answers.databaseUrl === null, 'mariadbd', ['mariadb-server-core', 'mariadb-client-core']],
    [answers.proxy === 'caddy', 'caddy', ['caddy']],
    [answers.proxy === 'nginx', 'nginx', ['nginx-light']],
    [answers.proxy === 'nginx' && !answers.certificate, 'certbot', ['certbot', 'python3-certbot-nginx']],
  ]
  return needed.flatMap(([isNeeded, program, packages]) => (isNeeded && !hasProgram(program) ? packages : []))
}
