/** Mails of an account in days counted back from now: index 0 is the last 24 hours. */
export type MailsByDay = readonly number[]

/** How far back the days are read. */
export const DAYS_READ = 56
const WEEK = 7
const WEEKS = 4
const MIN_WEEKS = 2
/** This many days without an unusual gap show that a single day without mails is unusual. */
const REGULAR_DAYS = 21
const HISTORY_DAYS = 28

/**
 * Whether an account is silent on a day on which it usually has mails. A day is usual if the same weekday had mails in each of the last
 * four weeks (two at least). For a regular account, one usual day without mails is silence. For any other account, it takes more such days
 * in a row than in the last four weeks, and at least two. `age`: days since the first known mail.
 */
export function isSilent(mails: MailsByDay, age: number): boolean {
  const silent = runAt(mails, age, 0)
  if (silent === 0) return false
  const history = Array.from({ length: HISTORY_DAYS }, (_, day) => day + silent).filter((day) => day < age)
  const longest = Math.max(0, ...history.map((day) => runAt(mails, age, day)))
  const isRegular = longest === 0 && age - silent >= REGULAR_DAYS
  return silent >= (isRegular ? 1 : Math.max(2, longest + 1))
}

/** How many usual days in a row had no mails, from `day` backwards. */
function runAt(mails: MailsByDay, age: number, day: number): number {
  let run = 0
  while (mails[day + run] === 0 && isUsual(mails, age, day + run)) run += 1
  return run
}

function isUsual(mails: MailsByDay, age: number, day: number): boolean {
  const weeks = Array.from({ length: WEEKS }, (_, week) => day + (week + 1) * WEEK).filter((earlier) => earlier < age)
  return weeks.length >= MIN_WEEKS && weeks.every((earlier) => (mails[earlier] ?? 0) > 0)
}
