import type { ReviewItem } from '#review/read-review.ts'
import type { Action } from './actions.ts'
import type { Case } from './open-case.ts'

/** What fills the screen. */
export type Page =
  | { readonly kind: 'queue' }
  | { readonly kind: 'case'; readonly opened: Case; chosen: number; scroll: number }
  /** The dry run of an action, which a note confirms. */
  | {
      readonly kind: 'preview'
      readonly opened: Case
      readonly action: Action
      readonly words: readonly string[]
      readonly lines: readonly string[]
      readonly isPossible: boolean
      scroll: number
    }
  | { readonly kind: 'text'; readonly title: string; readonly lines: readonly string[]; scroll: number }

/** A line that is being typed at the bottom. */
export interface Typing {
  readonly prompt: string
  text: string
  readonly enter: (text: string) => Promise<void> | void
  readonly completes: boolean
}

export interface Screen {
  items: readonly ReviewItem[]
  selected: number
  /** The page on top is shown; the queue is below all. */
  readonly pages: Page[]
  typing: Typing | null
  /** One line: what happened last, or what is under way. */
  status: string
  isBusy: boolean
  /** The part of the title about this session: whether it writes, and who works. */
  readonly session: string
  readonly writes: boolean
}

export function pageOn({ pages }: Screen): Page {
  return pages.at(-1) ?? { kind: 'queue' }
}

/** Whether the case is about a live app or a sandbox; null if no app is known. */
export function modeOf({ item: { sandbox } }: Case): 'live' | 'test' | null {
  if (sandbox === null) return null
  return sandbox ? 'test' : 'live'
}
