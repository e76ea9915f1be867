import type { Given } from '#setup/answers.ts'
import type { Question } from '#setup/questions.ts'
import type { SetUpReport } from '#setup/set-up.ts'
import { isTerminal, optional, required, requiredSecret, select } from './ask.ts'
import type { Commands, Flags, Texts } from './declaration.ts'
import { explainError } from './explain-error.ts'
import type { Output } from './output.ts'
import { readTextFile } from './read-file.ts'
import { callerOf, fail } from './session.ts'
import { UsageError } from './usage-error.ts'

type Options = Texts<'answers'> & Flags<'check' | 'dryRun'> & { readonly prefix: string }

/** `setup`: from a bare server to a running service. */
export const commands: Commands = {
  setup: {
    options: [
      ['--answers <file>', 'lines key=value instead of questions; - is standard input'],
      ['--check', 'change nothing: say what is as it should be, and what is not'],
      ['--dry-run', 'the same'],
      ['--prefix <folder>', 'write below this folder instead of /', ''],
    ],
    examples: ['setup', 'setup --answers answers.txt --dry-run', 'setup --answers answers.txt --json'],
    async print(out, _args, { answers: file, check, dryRun, prefix }: Options, who) {
      const [{ checkAnswers, parseAnswerLines }, { setUp }, { systemClock }] = await Promise.all([
        import('#setup/answers.ts'),
        import('#setup/set-up.ts'),
        import('#shared/time.ts'),
      ])
      const given = file === undefined ? await ask(out, systemClock.now()) : parseAnswerLines(readTextFile(file))
      const answers = checkAnswers(given, systemClock.now())
      const report = await setUp(answers, {
        prefix,
        isCheck: check === true || dryRun === true,
        caller: await callerOf(who),
        explain: explainError,
        onProgress: (part) => out.progress(part),
      })
      out.result(report, () => show(out, report))
      if (report.steps.some(({ status }) => status === 'failed')) await fail('invalid_request', 'a step failed')
    },
  },
}

/** Asks until each answer is right. */
async function ask(out: Output, now: Date): Promise<Given> {
  if (!isTerminal()) throw new UsageError('missing required option --answers')
  const [{ QUESTIONS }, { errorOf }] = await Promise.all([import('#setup/questions.ts'), import('#setup/answers.ts')])
  const given: Record<string, string> = {}
  for (const question of QUESTIONS) {
    if (question.when && !question.when(given)) continue
    let error: string | null
    do {
      given[question.key] = await answerTo(question)
      // What is picked from a menu is right.
      error = question.choices ? null : errorOf(given, question.key, now)
      if (error !== null) out.hint(`${question.key} ${error}`)
    } while (error !== null)
  }
  return given
}

async function answerTo({ key, text, choices, isSecret, isOptional }: Question): Promise<string> {
  if (choices) return select(text, choices)
  if (isSecret) return requiredSecret(key, undefined, text)
  return isOptional ? optional(text) : required(undefined, key, text)
}

function show(out: Output, { steps, dns }: SetUpReport): void {
  out.fields(Object.fromEntries(steps.map(({ name, status, detail }) => [name, `${status}: ${detail}`])))
  out.line('DNS records to publish:')
  for (const { type, name, value } of dns) out.lines(`${type} ${name}\n  ${value}`)
}
