#!/usr/bin/env node
import { run } from './run.ts'

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // The reader of a pipe may close it early: paygate listen | head -1
  if (error.code === 'EPIPE') process.exit()
  throw error
})

process.exitCode = await run(process.argv.slice(2))
