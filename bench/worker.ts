import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { childEnvironment } from '#config/environment.ts'
import { messageOf } from '#shared/errors.ts'

/** A process that does what it is asked, one thing after the other. */
export interface Worker<Order, Answer> {
  ask(order: Order): Promise<Answer>
  stop(): Promise<void>
}

type Reply<Answer> = { readonly answer: Answer } | { readonly error: string }

/** Starts a file of this folder as a process of its own, so that no side of a measurement shares another's event loop. */
export function startWorker<Order, Answer>(
  file: string,
  environment: Record<string, string> = {},
): Worker<Order, Answer> {
  const child = fork(join(import.meta.dirname, file), {
    env: childEnvironment(environment),
    serialization: 'advanced',
  })
  const exited = once(child, 'exit')
  return {
    async ask(order) {
      const over = new AbortController()
      const ended = once(child, 'exit', { signal: over.signal }).then(() => {
        throw new Error(`${file} ended`)
      })
      ended.catch(() => undefined)
      const replied = once(child, 'message', { signal: over.signal })
      child.send(order as object)
      try {
        const [reply] = (await Promise.race([replied, ended])) as [Reply<Answer>]
        if ('error' in reply) throw new Error(`${file}: ${reply.error}`)
        return reply.answer
      } finally {
        over.abort()
      }
    },
    async stop() {
      // It ends by itself then, and a profile of it is written.
      if (child.connected) child.disconnect()
      await exited
    },
  }
}

/** The other end, in the process that was started. */
export function answerOrders<Answer>(work: (order: never) => Promise<Answer> | Answer): void {
  const reply = (message: Reply<Answer>): void => void process.send?.(message)
  process.on('message', (order) => {
    void (async () => work(order as never))().then(
      (answer) => reply({ answer }),
      (error: unknown) => reply({ error: messageOf(error) }),
    )
  })
  // Nobody is left to ask.
  process.on('disconnect', () => process.exit(0))
}
