import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { listProviders } from '#providers/providers.ts'
import { filesWithSql, NEED_SQL } from './house/raw-sql.ts'

/** Where a provider is named besides its folder, and why. */
const MAY_NAME_PROVIDERS = [
  { path: /^providers\/providers\.ts /, why: 'it is the list' },
  { path: /^bank-mail\/\S+ names \S*ank\S*ransfer/, why: 'bank mails confirm bank transfers' },
  {
    path: /^config\/(config|settings)\.ts /,
    why: 'the addresses of their APIs are settings, and all are checked before anything else is loaded',
  },
]

/** A folder may import only the folders to its left. */
const LAYERS = [
  'shared',
  'product-version',
  'config',
  'embedded',
  'db',
  'context',
  'commands',
  'http',
  'mail',
  'operators',
  'apps',
  'plans',
  'promotions',
  'customers',
  'words',
  'webhooks',
  'realtime',
  'subscriptions',
  'payments',
  'ledger',
  'transactions',
  'bank-accounts',
  'providers',
  'bank-mail',
  'checkout',
  'mails',
  'renewals',
  'test-clock',
  'pages',
  'upkeep',
  'approvals',
  'decisions',
  'demo',
  'reports',
  'backups',
  'review',
  'doctor',
  'alerts',
  'support',
  'reference',
  'open-context',
  'setup',
  'daemon',
  'cli',
]
/** Rules: they import only other rules, and nothing that reaches outside. */
const PURE =
  /^(shared\/|.*\/(period|discount|lifecycle|node|balance|stages|signature|schedule|mail-answer|resolution)\.ts$)/
const MAY_IMPORT_TYPEORM = /^db\//
const MAY_SPEAK_SQL = /^db\/|\/store\.ts$/
const IMPORT =
  /^(?:import|export)\b[^'"]*?from\s*['"]([^'"]+)['"]|\bimport\s*\(\s*['"]([^'"]+)['"]\s*\)|^import\s*['"]([^'"]+)['"]/gm
const FORBIDDEN_NAMES =
  /(^|[/-])(helpers?|utils?|manager|services?(?!-account)|base|common|data|info|handle|process|misc)(-|\.ts$)/

const sources = globSync('**/*.ts', { cwd: 'src' }).sort()
const read = (path: string) => readFileSync(`src/${path}`, 'utf8')
/** Many rules read the same code. */
const once = <Value>(of: (path: string) => Value): ((path: string) => Value) => {
  const known = new Map<string, Value>()
  return (path) => known.get(path) ?? known.set(path, of(path)).get(path)!
}
/** The code without its comments: what they say imports nothing. */
const codeOf = once((path) =>
  read(path)
    .replace(/\/\*[\s\S]*?\*\//g, '')
    .replace(/^\s*\/\/.*$/gm, ''),
)
const importsOf = once((path) =>
  [...codeOf(path).matchAll(IMPORT)].map((match) => match[1] ?? match[2] ?? match[3] ?? ''),
)

function layerOf(path: string): number {
  const folder = (path.split('/')[0] ?? '').replace(/\.ts$/, '')
  const layer = LAYERS.indexOf(folder)
  return layer === -1 ? expect.fail(`put ${folder} into LAYERS`) : layer
}

/** The files whose code matches, for a message that names all of them. */
const filesWith = (pattern: RegExp, allowed: RegExp) =>
  sources.filter((path) => !allowed.test(path) && pattern.test(codeOf(path)))

describe('architecture', () => {
  it('reads the sources that it judges', () => {
    expect(sources.length).to.be.greaterThan(100)
    expect(importsOf('transactions/confirm-payment.ts')).to.include('#payments/store.ts')
  })

  it('a folder imports only folders to its left', () => {
    const wrong = sources.flatMap((path) =>
      importsOf(path)
        .filter((specifier) => specifier.startsWith('#') && !specifier.startsWith('#migrations/'))
        .filter((specifier) => layerOf(specifier.slice(1)) > layerOf(path))
        .map((specifier) => `${path} imports ${specifier}`),
    )
    expect(wrong).to.deep.equal([])
  })

  it('the map in src/README.md shows these folders in this order, and names only source files that are there', () => {
    const map = read('README.md')
    const lines = /^```\n([\s\S]*?)^```$/m.exec(map)?.[1]?.split('\n') ?? []
    expect(lines.length, 'lines of the tree, which fits on a screen').to.be.within(LAYERS.length, 55)
    const tree = pathsOf(lines)
    const folders = tree.filter((path) => /^src\/[^/]+\/?$/.test(path))
    expect(folders.map((path) => path.replace(/^src\/|\/$|\.ts$/g, ''))).to.deep.equal(LAYERS)
    expect(tree).to.include('src/providers/providers.ts')
    expect(tree.filter((path) => !existsSync(path))).to.deep.equal([])
    const there = [...globSync('{src,jobs,migrations,test,bench}/**/*'), ...globSync('*')].map((path) => `/${path}`)
    const phrases = lines.flatMap((line) => line.match(/[\w/-]+\.ts\b/g) ?? [])
    const named = [...phrases, ...namesIn(map)].filter((name) => /^[\w/.-]+(\.ts|\/[\w-]+)$/.test(name))
    expect(named).to.include('providers/providers.ts')
    expect(named.filter((name) => !there.some((path) => path.endsWith(`/${name}`)))).to.deep.equal([])
  })

  it('nothing climbs out of its folder but by a # alias', () => {
    expect(sources.filter((path) => importsOf(path).some((specifier) => specifier.startsWith('../')))).to.deep.equal([])
  })

  it('a rule imports only rules, and no input or output', () => {
    const rules = sources.filter((path) => PURE.test(path))
    expect(rules.length).to.be.above(20)
    const wrong = rules.flatMap((path) =>
      importsOf(path)
        .map((specifier) =>
          specifier.startsWith('./') ? `#${path.replace(/[^/]+$/, '')}${specifier.slice(2)}` : specifier,
        )
        .filter((specifier) =>
          specifier.startsWith('#')
            ? !PURE.test(specifier.slice(1)) && !isTypeOnly(path, specifier)
            : /^node:(fs|net|http|child_process)|^(typeorm|undici|koa)/.test(specifier),
        )
        .map((specifier) => `${path} imports ${specifier}`),
    )
    expect(wrong).to.deep.equal([])
  })

  it('only the database folder knows typeorm, and SQL stands only in stores and there', () => {
    expect(
      sources.filter((path) => importsOf(path).includes('typeorm') && !MAY_IMPORT_TYPEORM.test(path)),
    ).to.deep.equal([])
    expect(
      filesWith(/[`'"]\s*(SELECT|INSERT INTO|UPDATE \w+ SET|DELETE FROM|ALTER TABLE|CREATE TABLE)\b/, MAY_SPEAK_SQL),
    ).to.deep.equal([])
  })

  it('nothing that fails on a cluster is asked of the database', () => {
    expect(
      filesWith(
        /SKIP LOCKED|GET_LOCK|LOCK TABLES|INSERT IGNORE|synchronize: true|\bXA (START|BEGIN)|CREATE TRIGGER|\.save\(/,
        /^$/,
      ),
    ).to.deep.equal([])
  })

  it('the audit log, payments and the ledger’s lines are never taken back', () => {
    const forbidden =
      /DELETE FROM \$\{|(DELETE FROM|TRUNCATE) (audit_log|payments|allocations|refunds|transaction_changes|payment_applications|provider_events)\b|UPDATE (audit_log|allocations|transaction_changes|payment_applications) |\.(delete|update)\(\s*(auditLog|allocations|transactionChanges|ledgerLines)\b|\.delete\(\s*(payments|refunds|providerEvents)\b/
    // The demo of a sandbox app, whose money never was, is made and removed by one command; the audit log stays then too.
    const demo = 'demo/store.ts'
    expect(filesWith(forbidden, /^$/)).to.deep.equal([demo])
    expect(codeOf(demo)).not.to.match(/audit_log|auditLog/)
    const removing = sources.filter((path) => codeOf(path).includes('deleteDemo('))
    expect(removing).to.deep.equal(['demo/remove-demo.ts', demo])
  })

  it('a row names its parent by the id that the insert returned, never by the last id of the session', () => {
    expect(filesWith(/LAST_INSERT_ID|\bLAST_ID\b/, /^db\/queries\.ts$/)).to.deep.equal([])
  })

  it('a lock is taken by itself: the order inside Promise.all is no order', () => {
    const bodies = sources.flatMap((path) =>
      [...codeOf(path).matchAll(/Promise\.all(?:Settled)?\([\s\S]*?\n?\s*\)\n/g)].map(([body]) => ({ path, body })),
    )
    expect(bodies.length).to.be.above(20)
    const locking = bodies.filter(({ body }) => /\block[A-Z]\w*\(|\.bump\(|FOR UPDATE|\(tx\b/.test(body))
    expect(locking.map(({ path }) => path)).to.deep.equal([])
  })

  it('the driver is used by its documented interface: no private class or property, nothing replaced on its objects', () => {
    const taken =
      /mysql2\/(lib|dist)|import\.meta\.resolve\('mysql2|createRequire|\.prototype\b|\b_(all|free)Connections\b|\b_connectionQueue\b|\.(getConnection|addCommand|write|execute|query) = |\bmultipleStatements\b/
    expect(sources.filter((path) => path.startsWith('db/') && taken.test(codeOf(path)))).to.deep.equal([])
    expect(filesWith(/from 'mysql2/, /^(db|cli\/doctor)/)).to.deep.equal([])
  })

  it('only inTransaction opens a transaction, and never a step', () => {
    expect(
      filesWith(/\.transaction\(|START TRANSACTION|autocommit|\bBEGIN\b|startTransaction/, /^(db|commands)\//),
    ).to.deep.equal([])
    const steps = sources.filter((path) => /function \w+(?:<[^>]*>)?\(\s*tx: Tx/.test(codeOf(path)))
    expect(steps.length).to.be.above(20)
    const opening = steps.filter((path) => {
      const bodies = codeOf(path).split(/\n(?=(?:export )?(?:async )?function )/)
      return bodies.some(
        (body) =>
          /^(?:export )?(?:async )?function \w+(?:<[^>]*>)?\(\s*tx: Tx/.test(body) && body.includes('inTransaction('),
      )
    })
    expect(opening).to.deep.equal([])
  })

  it('a change is a command: outside the runner, only the bookkeeping of queues opens a transaction', () => {
    const queues =
      /^(commands|webhooks|realtime|providers|alerts)\/|^(http\/idempotency|mails\/(claim-mails|reminders\/claim-reminders|send-mails|receipts\/send-due-receipts)|subscriptions\/resync-node|upkeep\/(delete-old-rows|rotate-keys))\.ts$/
    expect(filesWith(/\binTransaction\(/, queues)).to.deep.equal([])
    expect(filesWith(/\brecordAudit\(/, /^commands\//)).to.deep.equal([])
  })

  it('the terminal asks commands and queries, never stores', () => {
    const terminal = sources.filter((path) => path.startsWith('cli/'))
    expect(terminal.length).to.be.above(20)
    expect(terminal.filter((path) => importsOf(path).some(isStore(path)))).to.deep.equal([])
  })

  it('a name has one meaning: one type Place at most, no file of turns, nothing but a command settles', () => {
    const all = globSync('{src,jobs,bin,test,bench,client,migrations}/**/*.ts', { exclude: ['**/node_modules/**'] })
    const places = all.filter((path) =>
      /^\s*(?:export )?(?:type|interface|class) Place\b/m.test(readFileSync(path, 'utf8')),
    )
    expect(places.length, places.join(', ')).to.be.at.most(1)
    expect(all.filter((path) => /(^|[/-])(in-)?turns?[-.]/.test(path))).to.deep.equal([])
    const settling = /^(db|commands|subscriptions|bank-mail)\//
    const settles = sources.filter(
      (path) => settling.test(path) && /settle(?!d\b)/i.test(read(path).replace(/\.allSettled\b/g, '')),
    )
    expect(settles).to.deep.equal([])
    const mends = sources.filter((path) => /\bmend/i.test(codeOf(path)))
    expect(mends, 'the deprecated key of doctor --json').to.deep.equal(['cli/doctor-commands.ts'])
  })

  it('a command of the terminal is declared as data: one file runs them all, and one runs their lists', () => {
    // `declaration.ts` opens the session that `session.ts` defines.
    expect(filesWith(/\.action\(|\binSession\(/, /^cli\/(declaration|session)\.ts$/)).to.deep.equal([])
    expect(filesWith(/\bgatherRows\(|--cursor/, /^cli\/list\.ts$/)).to.deep.equal([])
  })

  it('no two files import each other, however long the way round', () => {
    const files = new Map(globSync('{src,jobs,migrations}/**/*.ts').map((path) => [path, fileImportsOf(path)] as const))
    expect(files.size).to.be.greaterThan(sources.length)
    expect(circleIn(files)).to.equal(null)
  })

  it('one clock, one reader of the environment, one client for the outside, one voice', () => {
    expect(filesWith(/new Date\(\)|Date\.now\(\)/, /^shared\/time\.ts$/)).to.deep.equal([])
    // Samples are text for sellers.
    expect(filesWith(/process\.env/, /^(config\/(config|environment)|reference\/samples)\.ts$/)).to.deep.equal([])
    expect(filesWith(/\bfetch\(|from 'undici'/, /^http\/outbound\//)).to.deep.equal([])
    expect(filesWith(/\bconsole\./, /^cli\/output\.ts$/)).to.deep.equal([])
    // Past the escaping of `cli/output.ts` go only what has no text of others, completions, and screens of escaped tables.
    const mayWrite =
      /^(cli\/(output|main|run|program|alternate-screen|watch-commands)|daemon\/main|embedded\/supervisor)\.ts$/
    expect(filesWith(/\bstd(out|err)\.write\(|\bout\.drawn\(/, mayWrite)).to.deep.equal([])
  })

  it('no provider is named outside its folder but in the list of all', () => {
    const providers = providerFolders().map((folder) => ({ folder, names: namesOf(folder) }))
    const naming = sources.flatMap((path) => {
      const own = /^providers\/([^/]+)\//.exec(path)?.[1]
      const names = providers.filter(({ folder }) => folder !== own).flatMap((other) => other.names)
      const code = codeOf(path).replace(/examples: \[[^\]]*\]/g, '')
      return names.filter((name) => name.test(code)).map((name) => `${path} names ${name.source}`)
    })
    expect(naming.filter((found) => !MAY_NAME_PROVIDERS.some(({ path }) => path.test(found)))).to.deep.equal([])
    for (const { path, why } of MAY_NAME_PROVIDERS)
      expect(
        naming.filter((found) => path.test(found)),
        `is still needed: ${why}`,
      ).to.not.be.empty
  })

  it('every provider is one folder, and stands in the list of all under names of its own', () => {
    const folders = listProviders().map(({ method }) => folderOfMethod(method))
    expect([...folders].sort()).to.deep.equal(providerFolders())
    for (const key of ['method', 'code'] as const)
      expect(new Set(listProviders().map((provider) => provider[key])).size).to.equal(folders.length)
  })

  it('a provider imports no other provider', () => {
    const folderOf = (path: string) => /^providers\/(?!accounts\/|pauses\/)([^/]+)\//.exec(path)?.[1]
    const wrong = sources.flatMap((path) => {
      const own = folderOf(path)
      if (own === undefined) return []
      return importsOf(path).filter((specifier) => {
        const other = folderOf(specifier.slice(1))
        return other !== undefined && other !== own
      })
    })
    expect(wrong).to.deep.equal([])
  })

  it('what payment methods are made of does not import what runs them, but for the time of the first look-up', () => {
    const kit = sources.filter((path) => /^providers\/[^/]+\.ts$/.test(path))
    expect(kit.length).to.be.above(10)
    const running = kit.flatMap((path) =>
      importsOf(path)
        .filter((specifier) => /^(\.|#providers)\/engine\//.test(specifier))
        .map((specifier) => `${path} imports ${specifier}`),
    )
    expect(running).to.deep.equal(['providers/open-session.ts imports ./engine/schedule.ts'])
  })

  it('tests write SQL only where a row must be broken or a server is tested', () => {
    const files = filesWithSql()
    expect(files.filter((file) => !NEED_SQL.some(({ path }) => path.test(file)))).to.deep.equal([])
    for (const { path, why } of NEED_SQL)
      expect(
        files.filter((file) => path.test(file)),
        why,
      ).to.not.be.empty
  })

  it('the hooks of a test file stand inside its describe: outside they would run for every test of the suite', () => {
    const files = globSync('**/*.test.ts', { cwd: 'test' })
    expect(files.length).to.be.above(100)
    const rootHooks = files.filter((file) => /^(before|after)(Each)?\(/m.test(readFileSync(`test/${file}`, 'utf8')))
    expect(rootHooks).to.deep.equal([])
  })

  it('the daemon and the CLI do not import each other', () => {
    expect(
      sources.filter(
        (path) => path.startsWith('cli/') && importsOf(path).some((specifier) => specifier.startsWith('#daemon/')),
      ),
    ).to.deep.equal([])
  })

  it('names say what a file is', () => {
    expect(
      sources.filter((path) => FORBIDDEN_NAMES.test(path) || /[A-Z_]/.test(path) || path.endsWith('/index.ts')),
    ).to.deep.equal([])
    expect(filesWith(/export default/, /^$/)).to.deep.equal([])
  })

  it('every folder of src is a layer, and every job is on the schedule', () => {
    for (const entry of readdirSync('src', { withFileTypes: true }))
      if (entry.isDirectory()) layerOf(`${entry.name}/x.ts`)
    const schedule = read('daemon/jobs.ts')
    const jobs = readdirSync('jobs').filter((name) => name !== 'run-job.ts')
    expect(jobs).to.not.be.empty
    for (const job of jobs) expect(schedule, job).to.include(job.replace(/\.ts$/, ''))
  })
})

/** The paths of an indented tree; a folder ends with a slash, and a phrase follows each name. */
function pathsOf(lines: readonly string[]): string[] {
  const parents: string[] = []
  return lines.flatMap((line) => {
    const [, indent = '', name] = /^( *)(\S+)/.exec(line) ?? []
    if (name === undefined) return []
    parents.splice(indent.length / 2)
    parents.push(name)
    return [parents.join('')]
  })
}

/** What stands between backticks. */
function namesIn(markdown: string): string[] {
  return [...markdown.matchAll(/`([^`\n]+)`/g)].map(([, name = '']) => name)
}

function providerFolders(): string[] {
  return readdirSync('src/providers', { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !['accounts', 'engine', 'pauses'].includes(entry.name))
    .map(({ name }) => name)
    .sort()
}

function folderOfMethod(method: string): string {
  const folder = providerFolders().find((name) =>
    sources.some((path) => path.startsWith(`providers/${name}/`) && codeOf(path).includes(`method: '${method}'`)),
  )
  return folder ?? expect.fail(`no folder of providers has ${method}`)
}

/**
 * A provider by its folder, method and code, in code or text: `providers/bank-transfer/`, `bank_transfer`, `bankTransfer`,
 * `BankTransfer`. Not `test` alone, which is the name of a mode, too.
 */
function namesOf(folder: string): RegExp[] {
  const provider = listProviders().find(({ method }) => folderOfMethod(method) === folder)
  const names = new Set(
    [folder, provider?.method ?? folder, provider?.code ?? folder].map((name) => name.replace('_', '-')),
  )
  names.delete('test')
  return [...names].map((name) => {
    const words = name.split('-').map((word) => `[${word.charAt(0)}${word.charAt(0).toUpperCase()}]${word.slice(1)}`)
    return new RegExp(
      `(?<![A-Za-z])${words.join('_?')}(?![a-z])|(?<=[a-z])${capitalized(name)}(?![a-z])|providers/${folder}/`,
    )
  })
}

function capitalized(name: string): string {
  return name
    .split('-')
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('')
}

/** Whether the import is of types alone, which vanish before the code runs. */
function isTypeOnly(path: string, specifier: string): boolean {
  const last = specifier.split('/').at(-1) ?? ''
  const statements = codeOf(path).match(/^(?:import|export)\b[^'"]*from\s*['"][^'"]+['"]/gm) ?? []
  return statements
    .filter((statement) => statement.includes(last))
    .every((statement) => statement.startsWith('import type'))
}

/** Whether what the file imports is a store, for more than its types. */
function isStore(path: string): (specifier: string) => boolean {
  return (specifier) => specifier.endsWith('/store.ts') && !isTypeOnly(path, specifier)
}

/** The files of the repository that a file imports. */
function fileImportsOf(path: string): string[] {
  const code = readFileSync(path, 'utf8')
  return [...code.matchAll(IMPORT)]
    .map((match) => match[1] ?? match[2] ?? match[3] ?? '')
    .flatMap((specifier) => {
      if (specifier.startsWith('#migrations/')) return [specifier.slice(1)]
      if (specifier.startsWith('#')) return [`src/${specifier.slice(1)}`]
      return specifier.startsWith('./') ? [join(dirname(path), specifier)] : []
    })
}

/** The first circle that is found, as the files on it; null if there is none. */
function circleIn(files: ReadonlyMap<string, readonly string[]>): string | null {
  const done = new Set<string>()
  const visit = (path: string, way: readonly string[]): string | null => {
    if (way.includes(path)) return [...way.slice(way.indexOf(path)), path].join(' -> ')
    if (done.has(path)) return null
    for (const next of files.get(path) ?? []) {
      const circle = visit(next, [...way, path])
      if (circle) return circle
    }
    done.add(path)
    return null
  }
  for (const path of files.keys()) {
    const circle = visit(path, [])
    if (circle) return circle
  }
  return null
}
