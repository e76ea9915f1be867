// flagged.ts: payments that wait for a decision
import { paygate } from './paygate.ts'

for await (const { transaction_id, external_ref, flag_reason } of paygate.transactions.list({ flagged: true }))
  console.log(transaction_id, external_ref, flag_reason)
