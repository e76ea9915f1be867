import { parentPort } from 'node:worker_threads'

parentPort?.on('message', () => undefined)
void Promise.reject(new Error('nobody caught this'))
