import { appTime, bigint, exact, flag, id, int, json, realTime } from '#db/columns.ts'
import { following, where, type PageRequest } from '#db/conditions.ts'
import { insertedNew } from '#db/database-error.ts'
import type { Queries } from '#db/queries.ts'
import { shape, table, type Row } from '#db/table.ts'
import type { Tx } from '#commands/transaction.ts'
import type { SaleStatus } from '#plans/sale-status.ts'
import { found } from '#shared/errors.ts'
import type { AppTime } from '#shared/time.ts'

/** A promotion of an app. Its code and what it takes off never change. */
export const promotions = table('promotions', {
  id: id(),
  appId: bigint('app_id'),
  /** In upper case; unique in the app. */
  code: exact('code', 40),
  /** Null where it takes an amount off. */
  percent: int('percent').nullable(),
  /** What it takes off, in the smallest unit of `currency`; null where it takes a percentage off. */
  amount: bigint('amount').nullable(),
  currency: exact('currency', 3).nullable(),
  /** The plans that it is for; null for all. */
  planCodes: json<readonly string[]>('plan_codes').nullable(),
  /** Whether renewals get it, too. */
  everyPeriod: flag('every_period'),
  /** In the app's own time. */
  validUntil: appTime('valid_until').nullable(),
  maxUses: bigint('max_uses').nullable(),
  oncePerUser: flag('once_per_user'),
  /** Whether payers may type the code on the hosted page. */
  onPage: flag('on_page'),
  status: exact('status', 16).as<SaleStatus>(),
  /** Incremented to lock the promotion, while its uses are counted or it is changed. */
  version: bigint('version'),
  createdAt: realTime('created_at'),
  updatedAt: realTime('updated_at'),
})
export type Promotion = Row<typeof promotions>

/** The columns that completing a payment needs. */
export const appliedPromotions = promotions.only('id', 'code', 'everyPeriod')
export type AppliedPromotion = Row<typeof appliedPromotions>

/** A use of a promotion: reserved by an open checkout, then used once that is paid (R354). Times are the app's own. */
export const promotionUses = table('promotion_uses', {
  id: id(),
  appId: bigint('app_id'),
  promotionId: bigint('promotion_id'),
  endUserId: bigint('end_user_id'),
  /** The end user, where each may use the promotion once: the unique key over promotion and end user decides. */
  onceFor: bigint('once_for').nullable(),
  /** The payment; unique. Null for a free trial whose renewals get the discount. */
  transactionId: bigint('transaction_id').nullable(),
  status: exact('status', 16).as<'reserved' | 'used'>(),
  /** When the reservation expires: after that, others may take the use. */
  reservedUntil: appTime('reserved_until'),
  createdAt: appTime('created_at'),
})
export type PromotionUse = Row<typeof promotionUses>

/** A promotion as callers see it. */
const shownPromotions = promotions.joined('p', {
  /** How many payments have used it. */
  uses: bigint(`(SELECT COUNT(*) FROM promotion_uses u WHERE u.promotion_id = p.id AND u.status = 'used')`),
})
export type ShownPromotion = Row<typeof shownPromotions>

export async function insertPromotion(tx: Tx, row: Omit<Promotion, 'id'>): Promise<number> {
  return tx.insert(promotions, row)
}

export async function updatePromotionRow(
  tx: Tx,
  promotionId: number,
  changes: Partial<Pick<Promotion, 'status' | 'validUntil' | 'maxUses'>>,
): Promise<void> {
  await tx.update(promotions, { id: promotionId }, { ...changes, updatedAt: tx.now })
}

/** Throws `not_found`. */
export async function getPromotion(db: Queries, appId: number, promotionId: number): Promise<ShownPromotion> {
  return found(await db.one(shownPromotions, 'WHERE p.id = ? AND p.app_id = ?', [promotionId, appId]), 'promotion')
}

export async function findPromotion(db: Queries, appId: number, code: string): Promise<Promotion | null> {
  return db.one(promotions, 'WHERE app_id = ? AND code = ?', [appId, code])
}

const CODE_TO_TYPE = `SELECT id FROM promotions FORCE INDEX (promotions_app_page)
  WHERE app_id = ? AND on_page = 1 AND status = 'active'`

/** Whether the app has an active promotion whose code payers may type on the hosted page at `now`, the app's own time. */
export async function hasCodeToType(db: Queries, appId: number, now: AppTime): Promise<boolean> {
  // With OR instead of UNION, MySQL reads all codes that are over.
  const found = await db.one(
    shape({ id: id() }),
    `(${CODE_TO_TYPE} AND valid_until IS NULL LIMIT 1) UNION ALL (${CODE_TO_TYPE} AND valid_until > ? LIMIT 1)`,
    [appId, appId, now],
  )
  return found !== null
}

/** The promotions that these rows name, by app and code: `promotions.get(promotionKeyOf(subscription))`. */
export async function listPromotionsOf(
  db: Queries,
  named: readonly { readonly appId: number; readonly promotionCode: string | null }[],
): Promise<Map<string, Promotion>> {
  const keys = named.flatMap(({ appId, promotionCode }) => (promotionCode === null ? [] : [{ appId, promotionCode }]))
  if (keys.length === 0) return new Map()
  const ids = [...new Set(keys.map(({ appId }) => appId))]
  const codes = [...new Set(keys.map(({ promotionCode }) => promotionCode))]
  const found = await db.all(promotions, 'WHERE app_id IN (?) AND code IN (?)', [ids, codes])
  return new Map(found.map((row) => [promotionKeyOf({ appId: row.appId, promotionCode: row.code }), row]))
}

export function promotionKeyOf({
  appId,
  promotionCode,
}: {
  readonly appId: number
  readonly promotionCode: string | null
}): string {
  return `${appId} ${promotionCode ?? ''}`
}

/** As callers see it; null if the app has none with this code. */
export async function findShownPromotion(db: Queries, appId: number, code: string): Promise<ShownPromotion | null> {
  return db.one(shownPromotions, 'WHERE p.app_id = ? AND p.code = ?', [appId, code])
}

/** Promotions of an app, newest first. */
export async function listPromotionRows(
  db: Queries,
  filter: PageRequest & { readonly appId: number },
): Promise<ShownPromotion[]> {
  const listed = where(['app_id = ?', filter.appId], following(filter.after, ['created_at', 'id'], 'desc'))
  return db.all(
    shownPromotions,
    `FORCE INDEX (promotions_app_created) ${listed.sql} ORDER BY created_at DESC, id DESC LIMIT ?`,
    [...listed.params, filter.limit],
  )
}

/** Locks the promotion until the transaction ends, so that its uses can be counted. */
export async function lockPromotion(tx: Tx, promotionId: number): Promise<void> {
  await tx.bump(promotions, 'version', { id: promotionId })
}

/** Whether a payment of the end user has used the promotion. */
export async function hasUsed(db: Queries, promotionId: number, endUserId: number): Promise<boolean> {
  const used = `WHERE promotion_id = ? AND end_user_id = ? AND status = 'used'`
  return (await db.count(promotionUses, used, [promotionId, endUserId])) > 0
}

/**
 * Uses that are paid, and those that open checkouts of other end users have reserved at `now`, the app's own time. One statement: a use
 * that is paid between two would be counted by neither.
 */
export async function countTaken(db: Queries, promotionId: number, endUserId: number, now: AppTime): Promise<number> {
  const { taken } = await db.single(
    shape({ taken: bigint() }),
    `SELECT (SELECT COUNT(*) FROM promotion_uses WHERE promotion_id = ? AND status = 'used')
       + (SELECT COUNT(*) FROM promotion_uses
          WHERE promotion_id = ? AND status = 'reserved' AND reserved_until > ? AND end_user_id <> ?) AS taken`,
    [promotionId, promotionId, now, endUserId],
  )
  return taken
}

/** The end user's reservation passes to another checkout; returns whether there was one. */
export async function takeOverUse(
  tx: Tx,
  { promotionId, endUserId }: Pick<PromotionUse, 'promotionId' | 'endUserId'>,
  changes: Pick<PromotionUse, 'transactionId' | 'status' | 'reservedUntil'>,
): Promise<boolean> {
  return (await tx.update(promotionUses, { promotionId, endUserId, status: 'reserved' }, changes)) > 0
}

/** Adds a use; returns false if the end user has used a promotion that each may use once. */
export async function insertUse(tx: Tx, row: Omit<PromotionUse, 'id'>): Promise<boolean> {
  return insertedNew('promotion_uses_once', tx.insert(promotionUses, row))
}

/** Counts the use that the transaction reserved; false if another checkout has taken the reservation over. */
export async function countReservedUse(tx: Tx, transactionId: number): Promise<boolean> {
  return (await tx.update(promotionUses, { transactionId, status: 'reserved' }, { status: 'used' })) === 1
}
