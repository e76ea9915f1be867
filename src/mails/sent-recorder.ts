import { isRetryable } from '#db/database-error.ts'
import type { ClaimedMail, MailQueue } from './mail-queue.ts'

/** Mails recorded in one transaction. If the daemon dies, those still waiting are left unconfirmed. */
const GROUP_SIZE = 5
/** How long a mail waits for others to be recorded with. */
const GATHER_MS = 20

/** Records mails that the mail server accepted, in groups: while one group is written, the next one forms. */
export interface SentRecorder<Due> {
  /** Returns at once, or when the present group has been written. Throws what kept an earlier mail from being recorded, which leaves it unconfirmed. */
  record(mail: ClaimedMail<Due>): Promise<void>
  /** Waits until everything is recorded; throws as `record` does. */
  end(): Promise<void>
}

export function openSentRecorder<Due>(queue: MailQueue<Due>): SentRecorder<Due> {
  const waiting: ClaimedMail<Due>[] = []
  let writing: Promise<void> | null = null
  let gathering: NodeJS.Timeout | null = null
  let failure: Error | null = null

  const write = async (mails: readonly ClaimedMail<Due>[]): Promise<void> => {
    try {
      await queue.recordSent(mails)
      for (const { due } of mails) queue.count(due, 'sent')
    } catch (error) {
      if (mails.length === 1 || isRetryable(error))
        failure ??= error instanceof Error ? error : new Error(String(error))
      // One of them caused the failure: record the others without it.
      else for (const mail of mails) await write([mail])
    }
  }

  const writeAll = async (): Promise<void> => {
    while (waiting.length > 0) await write(waiting.splice(0, GROUP_SIZE))
  }

  const startWriting = (): Promise<void> => {
    if (gathering) clearTimeout(gathering)
    gathering = null
    writing ??= writeAll().finally(() => (writing = null))
    return writing
  }

  const throwFailure = (): void => {
    if (failure) throw failure
  }

  return {
    async record(mail) {
      waiting.push(mail)
      if (waiting.length < GROUP_SIZE) gathering ??= setTimeout(() => void startWriting(), GATHER_MS)
      else if (waiting.length === GROUP_SIZE) void startWriting()
      else await startWriting()
      throwFailure()
    },
    async end() {
      while (writing || waiting.length > 0) await startWriting()
      throwFailure()
    },
  }
}
