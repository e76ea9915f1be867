import { execFile } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { signRequest } from '#apps/call-signature.ts'
import { scratchFolder } from '../support/scratch.ts'

const RECIPES = readFileSync(join(import.meta.dirname, '../../docs/recipes.md'), 'utf8')
const run = promisify(execFile)

const SECRET = 'whsec_dGVzdC1zZWNyZXQ='
const SECONDS = 1767225600
const TARGET = '/api/v1/plans?status=active'
const BODY = '{"name":"An Nguyễn"}'
const SIGNATURE = createHmac('sha256', SECRET).update(`${SECONDS}.${BODY}`).digest('hex')
const WRONG = SIGNATURE.replace(/^./, (digit) => (digit === '0' ? '1' : '0'))

interface Language {
  readonly file: string
  /** The command that runs the recipe with the lines behind it; `{}` is the folder. */
  readonly commands: readonly (readonly string[])[]
  /** A program around the recipe. It prints the two signatures, then true or false for a genuine webhook, a forged and an old one. */
  readonly program: (recipe: string) => string
}

const quoted = JSON.stringify(BODY)
const LANGUAGES: Readonly<Record<string, Language>> = {
  sh: {
    file: 'recipe.sh',
    commands: [['bash', 'recipe.sh']],
    program: (recipe) => `${recipe}
sign sk_test_secret ${SECONDS} GET '${TARGET}' ''
sign sk_test_secret ${SECONDS} POST /api/v1/customers '${BODY}'
say() { if "$@"; then echo true; else echo false; fi; }
say is_genuine ${SECRET} ${SECONDS} ${SIGNATURE} '${BODY}' ${SECONDS + 300}
say is_genuine ${SECRET} ${SECONDS} ${WRONG} '${BODY}' ${SECONDS}
say is_genuine ${SECRET} ${SECONDS} ${SIGNATURE} '${BODY}' ${SECONDS + 301}`,
  },
  php: {
    file: 'recipe.php',
    commands: [['php', 'recipe.php']],
    program: (recipe) => `${recipe}
$body = '${BODY}';
echo sign('sk_test_secret', ${SECONDS}, 'GET', '${TARGET}', ''), "\\n", sign('sk_test_secret', ${SECONDS}, 'POST', '/api/v1/customers', $body), "\\n";
foreach ([['${SIGNATURE}', ${SECONDS + 300}], ['${WRONG}', ${SECONDS}], ['${SIGNATURE}', ${SECONDS + 301}]] as [$signature, $now])
    echo isGenuine('${SECRET}', '${SECONDS}', $signature, $body, $now) ? 'true' : 'false', "\\n";`,
  },
  python: {
    file: 'recipe.py',
    commands: [['/usr/bin/python3', 'recipe.py']],
    program: (recipe) => `${recipe}
body = ${quoted}.encode()
print(sign("sk_test_secret", ${SECONDS}, "GET", "${TARGET}"))
print(sign("sk_test_secret", ${SECONDS}, "POST", "/api/v1/customers", body))
for signature, now in [("${SIGNATURE}", ${SECONDS + 300}), ("${WRONG}", ${SECONDS}), ("${SIGNATURE}", ${SECONDS + 301})]:
    print(str(is_genuine("${SECRET}", "${SECONDS}", signature, body, now)).lower())`,
  },
  go: {
    file: 'recipe.go',
    commands: [['go', 'run', 'recipe.go']],
    program: (recipe) => `${recipe.replace('package paygate', 'package main')}
func main() {
	body := []byte(${quoted})
	fmt.Println(Sign("sk_test_secret", ${SECONDS}, "GET", "${TARGET}", nil))
	fmt.Println(Sign("sk_test_secret", ${SECONDS}, "POST", "/api/v1/customers", body))
	fmt.Println(IsGenuine("${SECRET}", "${SECONDS}", "${SIGNATURE}", body, time.Unix(${SECONDS + 300}, 0)))
	fmt.Println(IsGenuine("${SECRET}", "${SECONDS}", "${WRONG}", body, time.Unix(${SECONDS}, 0)))
	fmt.Println(IsGenuine("${SECRET}", "${SECONDS}", "${SIGNATURE}", body, time.Unix(${SECONDS + 301}, 0)))
}`,
  },
  ruby: {
    file: 'recipe.rb',
    commands: [['ruby', 'recipe.rb']],
    program: (recipe) => `${recipe}
body = '${BODY}'
puts sign('sk_test_secret', ${SECONDS}, 'GET', '${TARGET}')
puts sign('sk_test_secret', ${SECONDS}, 'POST', '/api/v1/customers', body)
puts genuine?('${SECRET}', '${SECONDS}', '${SIGNATURE}', body, ${SECONDS + 300})
puts genuine?('${SECRET}', '${SECONDS}', '${WRONG}', body, ${SECONDS})
puts genuine?('${SECRET}', '${SECONDS}', '${SIGNATURE}', body, ${SECONDS + 301})`,
  },
  java: {
    file: 'Paygate.java',
    // It runs for a moment, which a better compiler and several threads for garbage only make longer.
    commands: [['java', '-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC', '-Dfile.encoding=UTF-8', 'Paygate.java']],
    program: (recipe) => `${recipe.replace(/\}\s*$/, '')}
    public static void main(String[] arguments) {
        byte[] body = ${quoted}.getBytes(StandardCharsets.UTF_8);
        System.out.println(sign("sk_test_secret", ${SECONDS}L, "GET", "${TARGET}", new byte[0]));
        System.out.println(sign("sk_test_secret", ${SECONDS}L, "POST", "/api/v1/customers", body));
        System.out.println(isGenuine("${SECRET}", "${SECONDS}", "${SIGNATURE}", body, ${SECONDS + 300}L));
        System.out.println(isGenuine("${SECRET}", "${SECONDS}", "${WRONG}", body, ${SECONDS}L));
        System.out.println(isGenuine("${SECRET}", "${SECONDS}", "${SIGNATURE}", body, ${SECONDS + 301}L));
    }
}`,
  },
  csharp: {
    file: 'recipe.cs',
    commands: [
      ['mcs', '-codepage:utf8', '-out:recipe.exe', 'recipe.cs'],
      ['mono', 'recipe.exe'],
    ],
    program: (recipe) => `${recipe}
public static class Program
{
    public static void Main()
    {
        byte[] body = Encoding.UTF8.GetBytes(${quoted});
        Console.WriteLine(Paygate.Sign("sk_test_secret", ${SECONDS}, "GET", "${TARGET}", new byte[0]));
        Console.WriteLine(Paygate.Sign("sk_test_secret", ${SECONDS}, "POST", "/api/v1/customers", body));
        Console.WriteLine(Paygate.IsGenuine("${SECRET}", "${SECONDS}", "${SIGNATURE}", body, ${SECONDS + 300}) ? "true" : "false");
        Console.WriteLine(Paygate.IsGenuine("${SECRET}", "${SECONDS}", "${WRONG}", body, ${SECONDS}) ? "true" : "false");
        Console.WriteLine(Paygate.IsGenuine("${SECRET}", "${SECONDS}", "${SIGNATURE}", body, ${SECONDS + 301}) ? "true" : "false");
    }
}`,
  },
}

describe('the recipes for other languages', () => {
  const recipes = new Map(
    [...RECIPES.matchAll(/^```(\w+)\n(.*?)^```/gms)].map(([, language = '', code = '']) => [language, code]),
  )

  it('are all run here', () => {
    expect([...recipes.keys()]).to.have.members(Object.keys(LANGUAGES))
  })

  for (const [language, { file, commands, program }] of Object.entries(LANGUAGES)) {
    it(`in ${language} signs as the service does, and refuses what is forged or old`, async () => {
      const folder = scratchFolder(language)
      writeFileSync(join(folder, file), program(recipes.get(language) ?? ''))
      const env = { ...process.env, GOCACHE: join(folder, '.cache'), GOFLAGS: '-mod=mod', LC_ALL: 'C.UTF-8' }
      let printed = ''
      for (const [command = '', ...given] of commands) {
        const { stdout } = await run(command, given, { cwd: folder, env })
        printed += stdout
      }
      const signed = (method: string, target: string, body: string): string =>
        signRequest('sk_test_secret', String(SECONDS), { method, target, body: Buffer.from(body) })
      expect(printed.trim().split('\n')).to.deep.equal([
        signed('GET', TARGET, ''),
        signed('POST', '/api/v1/customers', BODY),
        'true',
        'false',
        'false',
      ])
    })
  }

  it('in sh refuse a timestamp that is no number, and run no command that it holds', async () => {
    const folder = scratchFolder('sh-timestamps')
    const timestamps = ['', '08', '-1', 'x[$(touch ran)]']
    const calls = timestamps.map((text) => `is_genuine ${SECRET} '${text}' ${SIGNATURE} '${BODY}' || echo refused`)
    writeFileSync(join(folder, 'recipe.sh'), [recipes.get('sh'), ...calls].join('\n'))
    const { stdout, stderr } = await run('bash', ['recipe.sh'], { cwd: folder })
    expect({ stdout, stderr, ran: existsSync(join(folder, 'ran')) }).to.deep.equal({
      stdout: 'refused\n'.repeat(timestamps.length),
      stderr: '',
      ran: false,
    })
  })
})
