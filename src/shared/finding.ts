/** What `doctor` found in one place. A fault is not ok; what is ok and has a mend is a warning. */
export interface Finding {
  readonly check: string
  readonly ok: boolean
  readonly detail: string
  /** What to do; null where nothing need be done. */
  readonly mend: string | null
}

export function sound(check: string, detail: string): Finding {
  return { check, ok: true, detail, mend: null }
}

/** Works, and deserves a look. */
export function warning(check: string, detail: string, mend: string): Finding {
  return { check, ok: true, detail, mend }
}

export function fault(check: string, detail: string, mend: string): Finding {
  return { check, ok: false, detail, mend }
}
