/** Mails of an account on each day since its first known mail, counted back from now: index 0 is the last 24 hours. */
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
 * in a row than in the last four weeks, and at least two.
 */
export function isSilent(mails: MailsByDay): boolean {
  const age = mails.length
  const silent = runAt(mails, 0)
  if (silent === 0) return false
  const history = Array.from({ length: HISTORY_DAYS }, (_, day) => day + silent).filter((day) => day < age)
  const longest = Math.max(0, ...history.map((day) => runAt(mails, day)))
  const isRegular = longest === 0 && age - silent >= REGULAR_DAYS
  return silent >= (isRegular ? 1 : Math.max(2, longest + 1))
}

/** How many usual days in a row had no mails, from `day` backwards. */
function runAt(mails: MailsByDay, day: number): number {
  let run = 0
  while (mails[day + run] === 0 && isUsual(mails, day + run)) run += 1
  return run
}

function isUsual(mails: MailsByDay, day: number): boolean {
  const weeks = Array.from({ length: WEEKS }, (_, week) => mails[day + (week + 1) * WEEK])
  const known = weeks.filter((count) => count !== undefined)
  return known.length >= MIN_WEEKS && known.every((count) => count > 0)
}
