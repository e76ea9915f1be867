import { messageOf } from '#shared/errors.ts'

/** A result of `setup`. */
export interface SetupStep {
  readonly name: string
  readonly status: 'done' | 'unchanged' | 'skipped' | 'failed'
  readonly detail: string
}

/** The state of a part of the installation: it is as it should be, it is skipped here, or it has something to do. */
export type PartState =
  | { readonly is: 'unchanged' | 'skipped'; readonly detail: string }
  | {
      readonly is: 'pending'
      /** What would be done: `write /etc/paygate/billing.env`. */
      readonly would: string
      /** Does it, and returns what was done. */
      readonly act: () => Promise<string> | string
    }

/** A part of the installation, which is checked and changed separately. */
export interface Part {
  readonly name: string
  /** What it does if it is not done yet: `make the tables`. */
  readonly does: string
  /** Parts that come before it. If one of them was skipped or failed, this one is skipped. */
  readonly needs?: readonly string[]
  readonly needsSystemd?: boolean
  /** Reads its state and changes nothing. Throws if the part cannot be made. */
  readonly inspect: () => Promise<PartState> | PartState
}

export const unchanged = (detail: string): PartState => ({ is: 'unchanged', detail })
export const skipped = (detail: string): PartState => ({ is: 'skipped', detail })
export const pending = (would: string, act: () => Promise<string> | string): PartState => ({
  is: 'pending',
  would,
  act,
})

export interface RunOptions {
  /** Changes nothing. */
  readonly isCheck: boolean
  readonly hasSystemd: boolean
  /** Explains to operators what a part threw. */
  readonly explain?: (error: unknown) => string
  readonly onProgress?: (part: string) => void
}

/** Runs the parts in order. If a part fails, only the parts that need it are skipped. */
export async function runParts(parts: readonly Part[], options: RunOptions): Promise<SetupStep[]> {
  const steps: SetupStep[] = []
  for (const part of parts) {
    options.onProgress?.(part.name)
    steps.push({ name: part.name, ...(await runPart(part, steps, options)) })
  }
  return steps
}

type Outcome = Omit<SetupStep, 'name'>

async function runPart(part: Part, steps: readonly SetupStep[], options: RunOptions): Promise<Outcome> {
  const { isCheck, hasSystemd, explain = messageOf } = options
  const leaveOut = (why: string): Outcome => ({ status: 'skipped', detail: `would ${part.does}${why}` })
  if (part.needsSystemd && !hasSystemd) return leaveOut(': systemd does not run here')
  const missing = (part.needs ?? []).find((need) => !isReady(steps, need))
  // It may be done already: it is not inspected yet.
  if (missing !== undefined) return leaveOut(` if needed: waits for the step ${missing}`)
  try {
    const state = await part.inspect()
    if (state.is !== 'pending') return { status: state.is, detail: state.detail }
    if (isCheck) return { status: 'skipped', detail: `would ${state.would}` }
    return { status: 'done', detail: await state.act() }
  } catch (error) {
    return { status: 'failed', detail: explain(error) }
  }
}

/** A step that is not part of this installation is no obstacle. */
function isReady(steps: readonly SetupStep[], name: string): boolean {
  const step = steps.find((one) => one.name === name)
  return step === undefined || step.status === 'done' || step.status === 'unchanged'
}
