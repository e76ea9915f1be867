import { expect } from 'chai'
import { describe, it } from 'mocha'
import { authPolicy } from '#apps/authenticate.ts'
import { signRequest } from '#apps/call-signature.ts'
import { unixSeconds } from '#shared/time.ts'
import { testContext } from '../support/context.ts'
import { anApp } from '../support/factories.ts'

const BODY = Buffer.from('{}')
const WRONG = '0'.repeat(64)

describe('the signature of a call', () => {
  it('is computed as often for a key that nobody has as for one that is in use', async () => {
    const ctx = testContext()
    const app = await anApp(ctx, { sandbox: false })
    const call = { method: 'POST', target: '/api/v1/plans', body: BODY }
    const timestamp = String(unixSeconds(ctx.clock.now()))

    /** How often the body, which every signature covers, was read for an answer. */
    const readsOfBody = async (apiKey: string, signature: string): Promise<number> => {
      let reads = 0
      const counted = {
        ...call,
        headers: { 'x-app-key': apiKey, 'x-timestamp': timestamp, 'x-signature': signature },
        get body() {
          reads += 1
          return BODY
        },
      }
      const answer = await authPolicy.authenticate(ctx, counted).then(
        () => 'accepted',
        () => 'refused',
      )
      expect(answer).to.equal(signature === WRONG ? 'refused' : 'accepted')
      return reads
    }

    const ofNobody = await readsOfBody(`pk_live_${'0'.repeat(24)}`, WRONG)
    expect(ofNobody, 'one signature, and the text of the refusal').to.equal(2)
    expect(await readsOfBody(app.apiKey, WRONG), 'not seen yet').to.equal(ofNobody)
    const genuine = signRequest(app.secret, timestamp, call)
    expect(await readsOfBody(app.apiKey, genuine), 'accepted').to.equal(1)
    expect(await readsOfBody(app.apiKey, genuine), 'accepted again').to.equal(1)
    expect(await readsOfBody(app.apiKey, WRONG), 'in use').to.equal(ofNobody)
  })
})
