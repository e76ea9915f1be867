import { styleText } from 'node:util'
import type { ReviewItem } from '#review/read-review.ts'
import type { ScreenSize } from '#cli/alternate-screen.ts'
import { amountCell, appCell } from '#cli/cells.ts'
import { charactersOf, columnsOf, fitted, fittedRight } from '#cli/columns.ts'
import { printable } from '#cli/printable.ts'
import { ageWords } from '#cli/review-commands.ts'
import { ACTIONS } from './actions.ts'
import { suggestionWords, type Case } from './open-case.ts'
import { modeOf, pageOn, type Page, type Screen, type Typing } from './pages.ts'

/** Title, rule, status and keys. */
const FRAME_ROWS = 4
const RULES = { live: '═', test: '┄' } as const
const MARKS = { live: '[LIVE] ', test: '[TEST] ' } as const
const MIN = { columns: 80, rows: 24 }

/** How many rows a page has for itself. */
export function bodyRows(rows: number): number {
  return Math.max(1, rows - FRAME_ROWS)
}

/** The screen as lines: exactly as many as it has rows, none wider than it has columns. */
export function drawConsole(screen: Screen, size: ScreenSize): string[] {
  const { columns, rows } = size
  if (columns < MIN.columns || rows < MIN.rows)
    return [fitted(`The console needs ${MIN.columns}×${MIN.rows}; this is ${columns}×${rows}. q quits.`, columns)]
  const page = pageOn(screen)
  const mode = 'opened' in page ? modeOf(page.opened) : null
  const body = bodyOf(screen, page, columns)
  const room = bodyRows(rows)
  const shown =
    page.kind === 'queue'
      ? [body[0] ?? '', ...body.slice(1 + queueTop(screen.selected, room - 1))]
      : body.slice(page.scroll)
  const lines = Array.from({ length: room }, (_, row) => fitted(shown[row] ?? '', columns))
  return [
    painted(mode, fitted(titleOf(screen, page), columns)),
    (mode === null ? '─' : RULES[mode]).repeat(columns),
    ...lines,
    fitted(printable(screen.status), columns),
    fitted(screen.typing ? typedOn(screen.typing, columns) : keysOf(screen, page), columns),
  ]
}

/** The prompt, and the end of what is typed, where the cursor is. */
function typedOn({ prompt, text }: Typing, columns: number): string {
  let shown = ''
  for (const character of charactersOf(text).reverse()) {
    if (columnsOf(`${prompt}${character}${shown}█`) > columns) break
    shown = character + shown
  }
  return `${prompt}${shown}█`
}

/** All lines of the page, of which the screen shows a part. */
export function bodyOf(screen: Screen, page: Page, columns: number): string[] {
  switch (page.kind) {
    case 'queue':
      return queueLines(screen, columns)
    case 'case':
      return caseLines(page.opened, page.chosen, columns)
    case 'preview':
      return [`billing-cli ${page.words.join(' ')}`, '', ...page.lines]
    case 'text':
      return [...page.lines]
  }
}

function titleOf({ items, session }: Screen, page: Page): string {
  switch (page.kind) {
    case 'queue':
      return `Paygate  ${items.length === 0 ? 'nothing needs review' : `${items.length} to review`}  ${session}`
    case 'case':
      return `${headOf(page.opened)}  ${session}`
    case 'preview':
      return `${headOf(page.opened)}  ${page.action.name}?`
    case 'text':
      return page.title
  }
}

function headOf(opened: Case): string {
  const { item } = opened
  const mode = modeOf(opened)
  return `${mode === null ? '' : MARKS[mode]}${kindWords(item)} ${item.id}  ${amountCell(item) ?? ''}  ${printable(item.subject)}`
}

function kindWords({ kind }: ReviewItem): string {
  return kind.replaceAll('_', ' ')
}

function queueTop(selected: number, room: number): number {
  return Math.max(0, selected - room + 1)
}

function queueLines({ items, selected }: Screen, columns: number): string[] {
  const head = rowOf([' ', 'waits', 'app', 'what', 'amount', 'about'], columns)
  if (items.length === 0) return [head, '', 'Nothing needs review.']
  return [head, ...items.map((item, index) => rowOf([index === selected ? '>' : ' ', ...cellsOf(item)], columns))]
}

function cellsOf(item: ReviewItem): string[] {
  return [
    ageWords(item.age_seconds),
    appCell(item) ?? '-',
    kindWords(item),
    amountCell(item) ?? '-',
    printable(item.subject),
  ]
}

function rowOf([mark = '', age = '', app = '', kind = '', amount = '', about = '']: string[], columns: number): string {
  const start = `${fitted(mark, 1)} ${fittedRight(age, 6)}  ${fitted(app, 10)} ${fitted(kind, 20)} ${fittedRight(amount, 13)}  `
  return `${start}${fitted(about, Math.max(1, columns - 57))}`
}

function caseLines({ item, suggestions, lines }: Case, chosen: number, columns: number): string[] {
  const offered = suggestions.map(
    (one, index) => `${index === chosen ? '>' : ' '} ${index + 1}. ${printable(suggestionWords(one))}`,
  )
  return [
    `waits for ${ageWords(item.age_seconds)}  app ${appCell(item) ?? '-'}`,
    `next step: ${printable(item.next_step)}`,
    '',
    ...(offered.length === 0 ? [] : ['may be meant for, the most likely first:', ...offered, '']),
    ...lines,
  ].map((line) => fitted(line, columns).trimEnd())
}

function keysOf(screen: Screen, page: Page): string {
  switch (page.kind) {
    case 'queue':
      return '↑↓ choose  enter open  / find  : command  ? keys  q quit'
    case 'case': {
      const actions = ACTIONS[page.opened.item.kind].map(({ key, name }) => `${key} ${name}`)
      return [...actions, 'esc back  / find  : command  ? keys'].join('  ')
    }
    case 'preview':
      if (!page.isPossible) return 'esc back'
      return screen.writes ? 'y confirm with a note  esc back' : 'esc back  (read only: console --write confirms)'
    case 'text':
      return '↑↓ scroll  esc back  q quit'
  }
}

function painted(mode: 'live' | 'test' | null, line: string): string {
  const look = mode === 'live' ? (['bold', 'bgRed', 'white'] as const) : (['inverse'] as const)
  return styleText([...look], line, { stream: process.stdout })
}

/** What `?` shows: every key. */
export function helpLines(): string[] {
  const actions = new Map(
    Object.entries(ACTIONS).map(([kind, list]) => [
      kind.replaceAll('_', ' '),
      list.map(({ key, name }) => `${key} ${name}`).join(', '),
    ]),
  )
  return [
    'Everywhere',
    '  ↑↓ choose, or scroll (k and j too); page up and page down',
    '  enter open  esc back  q quit  ? keys  / find  : command, tab completes',
    '',
    'On a case: the key shows what the command would do, and changes nothing',
    ...[...actions].map(([kind, keys]) => `  ${kind}: ${keys}`),
    '  ↑↓ choose a suggestion; page up and page down scroll',
    '',
    'On what it would do',
    '  y confirm with a note; without a note nothing happens',
    '',
    'Live apps have [LIVE] and a double rule, sandboxes [TEST] and a dotted rule.',
  ]
}
