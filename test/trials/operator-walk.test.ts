import { execFileSync } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { CREDENTIALS, SAMPLE_ENVIRONMENT } from '#setup/systemd-unit.ts'
import { DAEMON_UNIT, renderUnits } from '#setup/units.ts'
import { RELAY_BODY_BYTES } from '#bank-mail/endpoint.ts'
import { openDocPage } from '../support/doc-page.ts'
import { scratchFolder } from '../support/scratch.ts'

const ROOT = join(import.meta.dirname, '../..')
const UNITS = renderUnits({ root: ROOT, prefix: '' })

describe('docs/operating.md (the trial operator-walk follows all of it)', () => {
  const page = openDocPage('docs/operating.md')
  const operating = page.text
  const scripts = page.blocks('Operating', 'bash')

  it('has valid bash scripts with existing programs and folders', () => {
    expect(scripts.length).to.be.above(5)
    for (const script of scripts) execFileSync('bash', ['-n'], { input: script })
    for (const [path] of scripts.join('\n').matchAll(/\b(bin|templates)\/[\w/.-]+/g))
      expect(existsSync(join(ROOT, path)), path).to.equal(true)
  })

  it('names the secrets and the unit like the service', () => {
    for (const secret of CREDENTIALS) expect(operating).to.contain(`\`${secret}\``)
    const units = [...scripts.join('\n').matchAll(/(?:systemctl [a-z -]+|journalctl -u )(billing[\w-]*)/g)]
    expect(units.length).to.be.above(4)
    for (const [, unit = ''] of units) expect(UNITS.map(({ name }) => basename(name, '.service'))).to.include(unit)
  })

  it('keeps the backups and the keys, which together are every secret, in different folders, for different recipients', () => {
    const keys = page.block('Backups', 'bash', 'age-keygen -o')
    const first = page.block('Backups', 'bash', 'key export')
    expect(keys).to.match(/BILLING_BACKUP_DIR=\/var\/backups\/paygate$/m)
    expect(first).to.match(/key export --recipient .* --to \/root\/paygate-settings\//)
    expect([...keys.matchAll(/age-keygen -o (\S+)/g)].map(([, path]) => path)).to.deep.equal([
      '/etc/paygate/backup-identity',
      '/root/paygate-settings/keys-identity',
    ])
    expect(keys).to.include('install -d -m 700 /root/paygate-settings')
  })

  it('has reverse proxies that match the sample settings: one proxy, the client’s address, the port, the largest mail', () => {
    const setting = (name: string) => new RegExp(`^${name}=(.+)$`, 'm').exec(SAMPLE_ENVIRONMENT)?.[1]
    const listens = `${setting('BILLING_HOST')}:${setting('BILLING_PORT')}`
    const host = new URL(setting('BILLING_BASE_URL')!).host
    expect(setting('BILLING_TRUST_PROXY')).to.equal('1')
    const nginx = page.block('Reverse proxy', 'nginx')
    expect(nginx).to.match(new RegExp(`server_name ${host};`))
    expect(nginx).to.contain(`proxy_pass http://${listens};`)
    expect(nginx).to.contain('proxy_set_header X-Forwarded-For $remote_addr;')
    expect(nginx).to.contain('location = /metrics { return 404; }')
    const [, kilobytes] = /client_max_body_size (\d+)k;/.exec(nginx) ?? []
    expect(Number(kilobytes) * 1024).to.be.above(RELAY_BODY_BYTES)
    const caddy = page.block('Reverse proxy', 'caddy')
    expect(caddy).to.match(new RegExp(`^${host} {$`, 'm'))
    // Caddy sets X-Forwarded-For by default.
    expect(caddy).to.match(new RegExp(`^ *reverse_proxy ${listens}$`, 'm'))
    expect(caddy).to.contain('respond /metrics 404')
    for (const proxy of [nginx, caddy]) expect(proxy).to.contain('Strict-Transport-Security max-age=31536000')
  })

  it('installs a unit that systemd accepts, and that exposes no more than the page says', () => {
    const file = join(scratchFolder('unit'), 'billing-daemon.service')
    writeFileSync(file, UNITS.find(({ name }) => name === DAEMON_UNIT)!.content)
    const [, claimed = ''] = /`systemd-analyze security`: ([\d.]+)/.exec(operating) ?? []
    execFileSync('systemd-analyze', ['verify', '--man=no', '--recursive-errors=no', file], { stdio: 'pipe' })
    const threshold = `--threshold=${Number(claimed) * 10}`
    execFileSync('systemd-analyze', ['security', '--no-pager', '--offline=true', threshold, file], { stdio: 'pipe' })
  })
})
