/** The result of one check of `doctor`. A check that is ok and has a `fix` is a warning. */
export interface CheckResult {
  readonly check: string
  readonly ok: boolean
  readonly detail: string
  /** What to do; null if nothing is wrong. */
  readonly fix: string | null
}

export function passed(check: string, detail: string): CheckResult {
  return { check, ok: true, detail, fix: null }
}

/** Works, and needs attention. */
export function warning(check: string, detail: string, fix: string): CheckResult {
  return { check, ok: true, detail, fix }
}

export function failed(check: string, detail: string, fix: string): CheckResult {
  return { check, ok: false, detail, fix }
}
