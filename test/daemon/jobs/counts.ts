import { parentPort } from 'node:worker_threads'

parentPort?.on('message', (message) => {
  if (message === 'cancel') process.exit(0)
})
const counts = [{ metric: 'reminders_total', labels: { stage: '3', outcome: 'sent' }, by: 7 }]
parentPort?.postMessage({ type: 'counted', counts })
