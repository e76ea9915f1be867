import { parentPort, workerData } from 'node:worker_threads'

const { isHourly } = workerData as { isHourly: boolean }
const counts = [{ metric: 'reminders_total', labels: { hourly: String(isHourly) }, by: 1 }]
parentPort?.postMessage({ type: 'counted', counts })
parentPort?.postMessage('done')
