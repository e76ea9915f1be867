import type { Approval } from '#approvals/store.ts'
import { appCell, minuteCell, moneyCell, stateCell } from './cells.ts'
import { changeWithNote, type Consent } from './change.ts'
import { NOTE, YES, type Commands } from './declaration.ts'
import { listOfService } from './list.ts'
import { pickId } from './number-of.ts'
import { bannersOf, performAs, withSandbox, type Session } from './session.ts'

/** `approval …`: refunds above the limit, which wait for a second operator. */
export const commands: Commands = {
  'approval list': listOfService({
    description: 'refunds that waited for a second operator, the open ones first',
    examples: ['approval list', 'approval list --json'],
    async rows({ ctx }) {
      const { listApprovals } = await import('#approvals/store.ts')
      const { presentApproval } = await import('#approvals/present.ts')
      return (await listApprovals(ctx.db)).map(presentApproval)
    },
    async columns({ ctx }) {
      const { listApprovals } = await import('#approvals/store.ts')
      const rows = (await listApprovals(ctx.db)).map(({ id, appId }) => ({ id, app_id: appId }))
      const apps = new Map((await withSandbox(ctx, rows)).map((row) => [row.id, appCell(row)]))
      return [
        ['id', (row) => row.id],
        ['asked (UTC)', (row) => minuteCell(row.requested_at)],
        ['app', (row) => apps.get(row.id)],
        ['by', (row) => row.requested_by],
        ['amount', (row) => moneyCell(row.amount, row.currency)],
        ['status', (row) => stateCell(row.status)],
        ['command', (row) => row.command],
      ]
    },
    none: () => 'no refund has waited for a second operator',
    right: ['id', 'amount'],
  }),
  'approval show [id]': {
    description: 'one request: the stored command, and what it would do',
    examples: ['approval show 3', 'approval show 3 --json'],
    async run(session, [id]) {
      const { getApproval } = await import('#approvals/store.ts')
      await printApproval(session, await getApproval(session.ctx.db, await pickApproval(session, id)))
    },
  },
  'approval grant [id]': {
    description: 'make the refund that another operator asked for',
    options: [NOTE, YES],
    examples: ['approval grant 3 --note "checked with the bank"', 'approval grant 3 --note "checked" --dry-run'],
    async change(session, [id], options: Consent) {
      const { grantApproval } = await import('#decisions/grant-approval.ts')
      const approval_id = await pickApproval(session, id)
      const question = `Grant approval ${approval_id}?`
      const granted = await changeWithNote(session, options, question, ({ ctx, caller }, note) =>
        grantApproval(ctx, caller, { approval_id, note }),
      )
      await printApproval(session, granted)
    },
  },
  'approval deny [id]': {
    description: 'deny the refund; nothing happens to the money',
    options: [NOTE, YES],
    examples: [
      'approval deny 3 --note "the customer was refunded in cash"',
      'approval deny 3 --note "twice" --dry-run',
    ],
    async change(session, [id], options: Consent) {
      const { denyApproval } = await import('#approvals/deny-approval.ts')
      const approval_id = await pickApproval(session, id)
      const denied = await changeWithNote(session, options, `Deny approval ${approval_id}?`, (target, note) =>
        performAs(target, denyApproval, { approval_id, note }, null),
      )
      await printApproval(session, denied)
    },
  },
}

async function printApproval({ ctx, out }: Session, approval: Approval): Promise<void> {
  const { presentWholeApproval } = await import('#approvals/present.ts')
  const shown = presentWholeApproval(approval)
  const { effects, amount, currency, ...fields } = shown
  const banners = await bannersOf(ctx, [approval.appId])
  out.result(shown, () => {
    for (const line of banners) out.line(line)
    out.fields({ ...fields, amount: moneyCell(amount, currency) })
    for (const effect of effects) out.line(`- ${effect}`)
  })
}

/** The id; on a terminal it is picked from the open ones if it is missing. */
function pickApproval({ ctx }: Session, given: string | undefined): Promise<number> {
  return pickId(given, {
    question: 'Which approval?',
    async choices() {
      const { listApprovals } = await import('#approvals/store.ts')
      const open = (await listApprovals(ctx.db)).filter(({ status }) => status === 'open')
      return open.map(({ id, amount, currency, requestedBy }) => ({
        id,
        words: `${moneyCell(amount, currency)}, asked by ${requestedBy}`,
      }))
    },
  })
}
