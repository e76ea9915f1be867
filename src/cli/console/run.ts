import { once } from 'node:events'
import { MAX_ITEMS, readReview, requireUnchanged } from '#review/read-review.ts'
import { noteDecision } from '#review/note-decision.ts'
import { shellWord } from '#shared/shell-word.ts'
import { drawFrame, onAlternateScreen, screenSize } from '#cli/alternate-screen.ts'
import { explainError } from '#cli/explain-error.ts'
import { performAs, type Session } from '#cli/session.ts'
import { wordsOfLine } from '#cli/words-of-line.ts'
import { ACTIONS, type Action } from './actions.ts'
import { bodyOf, bodyRows, drawConsole, helpLines } from './draw.ts'
import { keysIn, type Key, type NamedKey } from './keys.ts'
import { openCase, type Case } from './open-case.ts'
import { pageOn, type Page, type Screen } from './pages.ts'
import { candidatesFor, runLine, type LineMode, type Ran, type RunningLine } from './run-line.ts'

const REFRESH_MS = 10_000

export interface ConsoleOptions {
  readonly writes: boolean
  /** Null for all apps. */
  readonly appId: number | null
}

/** Shows the review queue, and what is opened from it, until somebody quits or the connection is lost. */
export async function runConsole(session: Session, options: ConsoleOptions): Promise<void> {
  const quit = new AbortController()
  const onEnd = (): void => quit.abort()
  const screen = newScreen(session, options)
  const draw = (): void => drawFrame(drawConsole(screen, screenSize()))
  const handler = new KeyHandler(session, options, screen, draw, onEnd)
  const onKeys = (keys: string): void => {
    for (const key of keysIn(keys)) handler.press(key)
  }
  await onAlternateScreen({ onKeys, onResize: draw, onEnd }, async () => {
    const refresh = setInterval(() => void handler.refresh(), REFRESH_MS)
    try {
      await handler.refresh()
      if (!quit.signal.aborted) await once(quit.signal, 'abort')
    } finally {
      clearInterval(refresh)
      await handler.stop()
    }
  })
}

function newScreen({ caller, who }: Session, { writes }: ConsoleOptions): Screen {
  const session = `${writes ? 'WRITE' : 'read only'}, ${caller.name} (${who.role})`
  return { items: [], selected: 0, pages: [], typing: null, status: '', isBusy: false, session, writes }
}

/** Does what the keys ask for. */
class KeyHandler {
  readonly #session: Session
  readonly #options: ConsoleOptions
  readonly #screen: Screen
  readonly #draw: () => void
  readonly #leave: () => void
  #running: RunningLine | null = null
  /** The confirmed action that is under way. */
  #decision: Promise<void> = Promise.resolve()

  constructor(session: Session, options: ConsoleOptions, screen: Screen, draw: () => void, leave: () => void) {
    this.#session = session
    this.#options = options
    this.#screen = screen
    this.#draw = draw
    this.#leave = leave
  }

  press(key: Key): void {
    if ('name' in key && key.name === 'interrupt') this.#leave()
    else if (this.#screen.typing) this.#type(key)
    else if (this.#screen.isBusy) this.#wait(key)
    else if ('name' in key) this.#go(key.name)
    else this.#command(key.character)
    this.#draw()
  }

  /** Stops a running command, but lets a confirmed action finish and record its note. */
  async stop(): Promise<void> {
    this.#running?.stop()
    await this.#decision
  }

  /** Reads the queue again, and keeps the selected item selected. */
  async refresh(): Promise<void> {
    const screen = this.#screen
    const chosen = screen.items[screen.selected]
    try {
      screen.items = await readReview(this.#session.ctx, this.#options.appId)
      const again = screen.items.findIndex(({ kind, id }) => kind === chosen?.kind && id === chosen.id)
      screen.selected = Math.max(0, again === -1 ? Math.min(screen.selected, screen.items.length - 1) : again)
      if (screen.items.length === MAX_ITEMS) screen.status = `only the oldest ${MAX_ITEMS} are listed`
    } catch (error) {
      screen.status = `cannot be read: ${explainError(error)}`
    }
    this.#draw()
  }

  /** While a command runs, the only keys are those that stop it or quit. */
  #wait(key: Key): void {
    if ('name' in key && key.name === 'escape') this.#running?.stop()
    if ('character' in key && key.character === 'q') this.#leave()
  }

  #go(name: NamedKey): void {
    const page = pageOn(this.#screen)
    if (name === 'escape') this.#back()
    else if (name === 'enter' && page.kind === 'queue') this.#open()
    else if (name === 'up') this.#move(-1)
    else if (name === 'down') this.#move(1)
    else if (name === 'page-up') this.#scroll(-bodyRows(screenSize().rows))
    else if (name === 'page-down') this.#scroll(bodyRows(screenSize().rows))
  }

  #command(character: string): void {
    const page = pageOn(this.#screen)
    const action = page.kind === 'case' && ACTIONS[page.opened.item.kind].find(({ key }) => key === character)
    if (action) this.#preview(page.opened, action, page.chosen)
    else if (character === 'y' && page.kind === 'preview') this.#confirm(page)
    else if (character === 'q') this.#leave()
    else if (character === '?') this.#show('Keys', helpLines())
    else if (character === '/') this.#ask('/', (text) => this.#find(text))
    else if (character === ':') this.#ask(':', (text) => this.#run(text), { completes: true })
    else if (character === 'k') this.#move(-1)
    else if (character === 'j') this.#move(1)
  }

  #back(): void {
    this.#screen.pages.pop()
    this.#screen.status = ''
  }

  #show(title: string, lines: readonly string[]): void {
    this.#screen.pages.push({ kind: 'text', title, lines, scroll: 0 })
  }

  /** Chooses a suggestion of a case if there are several; otherwise as `#scroll`. */
  #move(by: number): void {
    const page = pageOn(this.#screen)
    if (page.kind === 'case' && page.opened.suggestions.length > 1)
      page.chosen = within(page.chosen + by, page.opened.suggestions.length)
    else this.#scroll(by)
  }

  /** Scrolls a text, or chooses in the queue. */
  #scroll(by: number): void {
    const page = pageOn(this.#screen)
    if (page.kind === 'queue') {
      this.#screen.selected = within(this.#screen.selected + by, this.#screen.items.length)
      return
    }
    const { columns, rows } = screenSize()
    const beyond = bodyOf(this.#screen, page, columns).length - bodyRows(rows)
    page.scroll = within(page.scroll + by, Math.max(0, beyond) + 1)
  }

  #open(): void {
    const item = this.#screen.items[this.#screen.selected]
    if (!item) return
    void this.#work('reading…', async () => {
      const opened = await openCase(this.#session, item, screenSize().columns)
      this.#screen.pages.push({ kind: 'case', opened, chosen: 0, scroll: 0 })
    })
  }

  /** Shows what an action would do. */
  #preview(opened: Case, action: Action, chosen: number, more: readonly string[] = []): void {
    const words = action.words(opened.item, opened.suggestions[chosen] ?? null)
    if (!words) {
      this.#screen.status = 'there is no suggestion to choose: use : and the whole command'
      return
    }
    const line = [...words, ...more]
    void this.#work('a dry run…', async () => {
      const ran = await this.#rehearse(action, line)
      if (ran.code !== 0 && action.takesReference && more.length === 0 && ran.lines.join(' ').includes('reference')) {
        this.#ask('reference of your transfer: ', (text) => {
          if (text !== '') this.#preview(opened, action, chosen, ['--reference', text])
        })
        return
      }
      const isPossible = ran.code === 0
      this.#screen.pages.push({ kind: 'preview', opened, action, words: line, lines: ran.lines, isPossible, scroll: 0 })
    })
  }

  async #rehearse({ rehearses, takesNote }: Action, line: readonly string[]): Promise<Ran> {
    if (!rehearses) return { code: 0, lines: ['This command has no dry run: it asks the provider now.'] }
    return this.#line([...line, ...(takesNote ? ['--note', 'a dry run'] : []), '--dry-run'], 'interruptible')
  }

  #confirm(page: Extract<Page, { kind: 'preview' }>): void {
    if (!page.isPossible) return
    if (!this.#screen.writes) {
      this.#screen.status = 'read only: start the console with --write to confirm'
      return
    }
    this.#ask('note: ', (note) => {
      if (note.trim() === '') this.#screen.status = 'nothing was done: a note is needed'
      else this.#do(page, note.trim())
    })
  }

  #do({ opened: { item }, action, words }: Extract<Page, { kind: 'preview' }>, note: string): void {
    this.#decision = this.#work('working…', async () => {
      await requireUnchanged(this.#session.ctx, item)
      const line = [...words, ...(action.takesNote ? ['--note', note] : [])]
      const { code, lines } = await this.#line(line, 'uninterruptible')
      if (code !== 0) throw new Error(lines.find((line) => line !== '') ?? 'failed')
      if (!action.takesNote) await this.#keepNote(item, words, note)
      this.#screen.pages.length = 0
      this.#screen.status = `done: ${lines.find((line) => line !== '') ?? action.name}`
      await this.refresh()
    })
  }

  async #keepNote({ kind, id, app_id: appId }: Case['item'], words: readonly string[], note: string): Promise<void> {
    const subject = `${kind.replaceAll('_', ' ')} ${id}`
    await performAs(this.#session, noteDecision, { note, command: words.join(' ') }, { subject, appId })
  }

  #find(text: string): void {
    if (text.trim() === '') return
    const ofApp = this.#options.appId === null ? [] : ['--app', String(this.#options.appId)]
    this.#output(`find ${text}`, ['find', text, ...ofApp])
  }

  #run(text: string): void {
    if (text.trim() === '') return
    try {
      this.#output(text, wordsOfLine(text.replace(/^\s*billing-cli /, '')))
    } catch (error) {
      this.#screen.status = explainError(error)
    }
  }

  /** Runs a line and shows what it prints. Without `--write` it may do what the role view may. */
  #output(title: string, words: readonly string[]): void {
    void this.#work(`${title}…  esc stops it`, async () => {
      const { code, lines } = await this.#line(words, this.#screen.writes ? 'interruptible' : 'read-only')
      const isRefused = code !== 0 && !this.#screen.writes && lines.join(' ').includes('forbidden')
      const hint = isRefused ? ['', 'This console only reads: start it with --write.'] : []
      this.#show(`${title}${code === 0 ? '' : `  exit ${code}`}`, [...lines, ...hint])
      await this.refresh()
    })
  }

  async #line(words: readonly string[], mode: LineMode): Promise<Ran> {
    this.#running = runLine(words, this.#session.who, mode)
    try {
      return await this.#running.ended
    } finally {
      this.#running = null
    }
  }

  /** Does something that takes a while. Meanwhile `#wait` handles the keys. */
  async #work(status: string, work: () => Promise<void>): Promise<void> {
    const screen = this.#screen
    screen.isBusy = true
    screen.status = status
    await work()
      .catch((error: unknown) => {
        screen.status = explainError(error)
      })
      .finally(() => {
        screen.isBusy = false
        if (screen.status === status) screen.status = ''
        this.#draw()
      })
  }

  #ask(prompt: string, enter: (text: string) => void, { completes = false } = {}): void {
    this.#screen.status = ''
    this.#screen.typing = { prompt, text: '', enter, completes }
  }

  #type(key: Key): void {
    const screen = this.#screen
    const { typing } = screen
    if (!typing) return
    if ('character' in key) typing.text += key.character
    else if (key.name === 'backspace') typing.text = typing.text.replace(/.$/u, '')
    else if (key.name === 'tab' && typing.completes) void this.#complete()
    else if (key.name === 'escape') screen.typing = null
    else if (key.name === 'enter') {
      screen.typing = null
      void typing.enter(typing.text)
    }
  }

  /** Completes the word before the cursor as far as all candidates agree, and shows them. */
  async #complete(): Promise<void> {
    const { typing } = this.#screen
    if (!typing) return
    const text = typing.text
    const values = await candidatesFor(text.split(' '))
    if (this.#screen.typing !== typing || typing.text !== text) return
    const before = text.slice(0, text.lastIndexOf(' ') + 1)
    const [only] = values
    if (only !== undefined && values.length === 1) typing.text = `${before}${shellWord(only)} `
    else if (values.length > 1) typing.text = `${before}${commonStart(values)}`
    this.#screen.status = values.length > 1 ? values.join('  ') : ''
    this.#draw()
  }
}

function within(index: number, length: number): number {
  return Math.max(0, Math.min(index, length - 1))
}

function commonStart(texts: readonly string[]): string {
  let start = texts[0] ?? ''
  while (!texts.every((text) => text.startsWith(start))) start = start.slice(0, -1)
  return start
}
