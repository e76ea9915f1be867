import type { Context } from '#context.ts'
import { find, type FindOptions, type Match } from './find.ts'
import type { NextStep } from './next-steps.ts'
import { MAX_PER_KIND } from './store.ts'
import { viewEndUser, type EndUserView } from './view-end-user.ts'

/** More screens than this do not answer a question about one end user. */
const MAX_SCREENS = 3

/** What support reads about a text: what it names, and a screen about each of the first end users. */
export interface SearchAnswer {
  readonly matches: readonly Match[]
  readonly screens: readonly EndUserView[]
  /** How many end users the matches are about; `screens` may show fewer. */
  readonly endUserCount: number
  /** The steps that no screen lists. */
  readonly nextSteps: readonly NextStep[]
  /** Whether these are transfer codes that the text may mean, and none is the text itself. */
  readonly isNear: boolean
  /** Whether there may be more matches of a kind. */
  readonly isCut: boolean
}

/** Finds what a text names, and views the end users that it is about. Throws what `find` throws. */
export async function answerSearch(ctx: Context, text: string, options: FindOptions): Promise<SearchAnswer> {
  const { matches, endUsers, nextSteps, isNear } = await find(ctx, text, options)
  const shown = endUsers.slice(0, MAX_SCREENS)
  const screens = await Promise.all(shown.map(({ appId, externalRef }) => viewEndUser(ctx, appId, externalRef)))
  const kinds = Map.groupBy(matches, ({ kind }) => kind)
  const listed = new Set(screens.flatMap((screen) => screen.next_steps.map(({ command }) => command)))
  return {
    matches,
    screens,
    endUserCount: endUsers.length,
    nextSteps: nextSteps.filter(({ command }) => !listed.has(command)),
    isNear,
    isCut: [...kinds.values()].some(({ length }) => length >= MAX_PER_KIND),
  }
}
