import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { scratchFolder } from './scratch.ts'

export interface Certificate {
  readonly key: string
  readonly cert: string
}

/** A certificate authority of this run, and the certificates that it issues. */
export interface Authority {
  /** For `NODE_EXTRA_CA_CERTS` of a child process. */
  readonly caPath: string
  issue(...hosts: string[]): Certificate
}

/** A key of a curve is made at once, one of RSA takes up to a second. */
const QUICK_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1']

export function anAuthority(): Authority {
  const folder = scratchFolder('tls')
  const caPath = join(folder, 'ca.pem')
  const caKey = join(folder, 'ca.key')
  const subject = ['-subj', '/CN=Paygate test authority', '-days', '2', '-nodes']
  openssl('req', '-x509', ...QUICK_KEY, '-keyout', caKey, '-out', caPath, ...subject)
  return {
    caPath,
    issue(...hosts) {
      const at = (suffix: string) => join(folder, `${hosts[0]}.${suffix}`)
      const names = hosts.map((host) => `${/^[\d.]+$/.test(host) ? 'IP' : 'DNS'}:${host}`).join(',')
      writeFileSync(at('ext'), `subjectAltName=${names}\n`)
      const request = ['-subj', `/CN=${hosts[0]}`, '-nodes']
      openssl('req', ...QUICK_KEY, '-keyout', at('key'), '-out', at('csr'), ...request)
      const ca = ['-CA', caPath, '-CAkey', caKey, '-CAcreateserial']
      openssl('x509', '-req', '-in', at('csr'), ...ca, '-out', at('pem'), '-days', '2', '-extfile', at('ext'))
      return { key: readFileSync(at('key'), 'utf8'), cert: readFileSync(at('pem'), 'utf8') }
    },
  }
}

/** A key pair with a self-signed certificate, such as Google publishes for identity tokens. */
export function aSigningCertificate(): Certificate {
  const folder = scratchFolder('sign')
  const [key, cert] = [join(folder, 'key'), join(folder, 'pem')]
  const subject = ['-subj', '/CN=securetoken', '-days', '2', '-nodes']
  openssl('req', '-x509', '-newkey', 'rsa:2048', '-keyout', key, '-out', cert, ...subject)
  return { key: readFileSync(key, 'utf8'), cert: readFileSync(cert, 'utf8') }
}

function openssl(...args: string[]): void {
  execFileSync('openssl', args, { stdio: ['ignore', 'ignore', 'pipe'] })
}
