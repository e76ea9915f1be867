import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { scratchFolder } from '../support/scratch.ts'
import { loadRules, RULE_FILES, type Rules } from './rules.ts'

const ROOT = join(import.meta.dirname, '../..')
const [LIFECYCLE, BALANCE, DISCOUNT, RESOLUTION] = RULE_FILES

/** One wrong line of the rules: the text in the file, which stands there once, and what stands there instead. */
export interface Mutant {
  readonly name: string
  readonly file: string
  readonly right: string
  readonly wrong: string
}

const mutantsOf = (file: string, lines: readonly (readonly [name: string, right: string, wrong: string])[]): Mutant[] =>
  lines.map(([name, right, wrong]) => ({ name, file, right, wrong }))

export const MUTANTS: readonly Mutant[] = [
  // Wrong comparisons and wrong times in what a payment does.
  ...mutantsOf(LIFECYCLE, [
    [
      'a period includes its end',
      "|| at < state.currentPeriodEnd ? 'active'",
      "|| at <= state.currentPeriodEnd ? 'active'",
    ],
    ['nothing is for ever', 'return state !== null && state.currentPeriodEnd === null', 'return state === undefined'],
    ['a trial is a start', "if (isTrial) return 'trial'", "if (isTrial) return 'start'"],
    ['an expired subscription is changed', "=== 'expired') return 'start'", "=== 'expired') return 'change'"],
    [
      'extend and change are confused',
      "current.planId === planId ? 'extend' : 'change'",
      "current.planId === planId ? 'change' : 'extend'",
    ],
    [
      'lifetime is paid for again',
      "if (isLifetime(current)) return { kind: 'refused', reason: 'already_lifetime' }",
      '',
    ],
    [
      'a trial is given twice',
      "if (quote.purpose === 'trial' && quote.isTrialUsed) return",
      'if (quote.isTrialUsed && !quote.openedAt) return',
    ],
    [
      'nothing is superseded',
      'if (valid && last && !quote.isAccepted && isSuperseded(',
      'if (valid && !last && !quote.isAccepted && isSuperseded(',
    ],
    [
      'what an operator accepts is superseded',
      'if (valid && last && !quote.isAccepted && isSuperseded(',
      'if (valid && last && isSuperseded(',
    ],
    [
      'a payment counts from when it was opened',
      "current && effectiveStatus(current, paidAt) === 'active'",
      "current && effectiveStatus(current, quote.openedAt) === 'active'",
    ],
    [
      'an expired period is extended',
      "const valid = current && effectiveStatus(current, paidAt) === 'active' ? current : null",
      'const valid = current',
    ],
    [
      'an extension begins at the payment',
      'periodFrom(extendedEnd, quote.interval, valid',
      'periodFrom(paidAt, quote.interval, valid',
    ],
    [
      'a new period begins when it was opened',
      'periodFrom(paidAt, quote.interval, null)',
      'periodFrom(quote.openedAt, quote.interval, null)',
    ],
    [
      'a late renewal brings its old plan back',
      "extendedEnd !== null || quote.purpose === 'extend'",
      'extendedEnd !== null',
    ],
    [
      'the price is kept where it was chosen',
      '&& !choosesPrice(current, last, quote) ?',
      '&& choosesPrice(current, last, quote) ?',
    ],
    ['a trial is no trial', "isTrial: quote.purpose === 'trial' }", 'isTrial: false }'],
    ['a trial interrupts a valid period', "case 'trial':\n      return true", "case 'trial':\n      return false"],
    ['a renewal after a switch is superseded', 'return isOtherPlan && last.isBought', 'return isOtherPlan'],
    ['a renewal is superseded by any purchase', 'return isOtherPlan && last.isBought', 'return last.isBought'],
    ['an older change counts', 'quote.openedAt < last.openedAt ||', 'false ||'],
    ['a change of the same second is older', 'quote.openedAt < last.openedAt ||', 'quote.openedAt <= last.openedAt ||'],
    ['no times are equal', 'const EQUAL_MS = 60 * SECOND_MS', 'const EQUAL_MS = 0 * SECOND_MS'],
    [
      'sixty seconds are too many',
      'paidAt.getTime() < last.paidAt.getTime() - EQUAL_MS',
      'paidAt.getTime() <= last.paidAt.getTime() - EQUAL_MS',
    ],
    ['an earlier payment counts', '|| paidAt.getTime() < last.paidAt.getTime() - EQUAL_MS', ''],
    ['a renewal extends only its own plan', "return purpose === 'extend' || (purpose", 'return (purpose'],
    ['a change of plan extends', '&& valid.planId === planId)', '&& valid !== null)'],
    ['a renewal chooses the price', 'return !quote.isByRenewalLink && quote.planId', 'return quote.planId'],
    ['a price of the same second is not chosen', 'quote.openedAt >= last.pricedAt', 'quote.openedAt > last.pricedAt'],
    ['a switch is a purchase', 'return purpose !== null || (last?.planId === planId && last.isBought)', 'return true'],
    [
      'a switch to another price of a plan is no purchase',
      'purpose !== null || (last?.planId === planId && last.isBought)',
      'purpose !== null',
    ],
    ['a switch to another plan leaves it bought', 'last?.planId === planId && last.isBought', 'last?.isBought'],
    ['an end is no plan choice', 'return { ...last, openedAt, paidAt }', 'return last'],
    ['an extension is a plan choice', "if (line.kind === 'extended') return { ...last, pricedAt }", ''],
  ]),
  // Money that is lost, made, or counted twice.
  ...mutantsOf(BALANCE, [
    ['a refund is forgotten', 'return amountReceived - amountRefunded', 'return amountReceived'],
    ['a part is not counted', 'return Math.max(0, amount - keptOf(balance))', 'return Math.max(0, amount)'],
    ['what was used is moved', 'return keptOf(balance) - balance.amountUsed', 'return keptOf(balance)'],
    ['money that arrives is not left', 'amountLeft: amountLeft + amount }', 'amountLeft }'],
    [
      'money arrives twice',
      'amountReceived: amountReceived + amount, amountRefunded,',
      'amountReceived: amountReceived + 2 * amount, amountRefunded,',
    ],
    ['what is not given is used', 'isGiven ? paidOf(balance, price) : 0', 'paidOf(balance, price)'],
    ['nothing is left over', 'amountUsed, amountLeft: keptOf(balance) - amountUsed }', 'amountUsed, amountLeft: 0 }'],
    [
      'a refund takes nothing of what was used',
      'amountUsed: balance.amountUsed - fromUsed',
      'amountUsed: balance.amountUsed',
    ],
    [
      'a refund takes nothing of what is left',
      'amountLeft: balance.amountLeft - fromLeft',
      'amountLeft: balance.amountLeft',
    ],
    ['a second refund replaces the first', 'amountRefunded: balance.amountRefunded + amount', 'amountRefunded: amount'],
    [
      'money that moves away stays',
      'return { ...balanceOf(balance), amountReceived: balance.amountReceived - amount, amountLeft }',
      'return { ...balanceOf(balance), amountLeft }',
    ],
    [
      'money that moves away is still left',
      'balance.amountLeft - Math.min(balance.amountLeft, amount)',
      'balance.amountLeft',
    ],
  ]),
  // Discounts.
  ...mutantsOf(DISCOUNT, [
    ['a percentage is rounded up', 'BigInt(percent)) / 100n', 'BigInt(percent) + 99n) / 100n'],
    ['the discount is added', 'amount: price.amount - discountAmount', 'amount: price.amount + discountAmount'],
  ]),
  // What operators may do.
  ...mutantsOf(RESOLUTION, [
    [
      'a refund of a duplicate takes the purchase, too',
      "=== 'duplicate_payment' ? transaction.amountLeft : keptOf",
      "=== 'duplicate_payment' ? keptOf(transaction) : keptOf",
    ],
    [
      'a repeated refund takes the purchase',
      "transaction.resolution === 'refunded')\n",
      'transaction.amountReceived < 0)\n',
    ],
    [
      'any completed payment is superseded',
      "return status === 'completed' && flagReason === 'superseded'",
      "return status === 'completed'",
    ],
  ]),
]

/** The rules with one wrong line. Throws if the right line does not stand there exactly once. */
export async function rulesOf({ file, name, right, wrong }: Mutant): Promise<Rules> {
  const folder = scratchFolder('mutant')
  cpSync(join(ROOT, 'src/shared'), join(folder, 'src/shared'), { recursive: true })
  cpSync(join(ROOT, 'package.json'), join(folder, 'package.json'))
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  for (const copied of [...RULE_FILES, 'src/subscriptions/period.ts']) {
    mkdirSync(dirname(join(folder, copied)), { recursive: true })
    cpSync(join(ROOT, copied), join(folder, copied))
  }
  const text = readFileSync(join(ROOT, file), 'utf8')
  const parts = text.split(right)
  if (parts.length !== 2) throw new Error(`“${name}”: its line stands ${parts.length - 1} times in ${file}`)
  writeFileSync(join(folder, file), parts.join(wrong))
  return loadRules(folder)
}
