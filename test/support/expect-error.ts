import { expect } from 'chai'
import { AppError } from '#shared/errors.ts'
import type { Response } from './api.ts'

/** The answer is 400 `invalid_request` on this field, whose message names it; null: on no single field. */
export function expectFieldError(answer: Response, field: string | null): void {
  expect(answer.status, `${field}: ${answer.text}`).to.equal(400)
  expect(answer.body.error, answer.text).to.include({ code: 'invalid_request', field })
  if (field !== null) expect(answer.body.error.message).to.contain(field)
}

/** The answer is this error, with the one status of its code (R21). */
export function expectError(answer: Response, status: number, code: string): void {
  expect(answer.status, answer.text).to.equal(status)
  expect(answer.body.success).to.equal(false)
  expect(answer.body.error.code, answer.text).to.equal(code)
}

/** The error with which work is refused. */
export async function refusalOf(work: Promise<unknown>): Promise<AppError> {
  const error: unknown = await work.then(
    () => null,
    (thrown: unknown) => thrown,
  )
  expect(error).to.be.instanceOf(AppError)
  return error as AppError
}
