import { expect } from 'chai'
import { beforeEach, describe, it } from 'mocha'
import { getApp } from '#apps/store.ts'
import { testContext, type TestContext } from '../support/context.ts'
import { anApp, type TestApp } from '../support/factories.ts'
import { changeApp } from '../support/operators.ts'

const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)

describe('changes of an app’s settings', () => {
  let ctx: TestContext
  let app: TestApp
  beforeEach(async () => {
    ctx = testContext()
    app = await anApp(ctx)
  })

  const settings = async () => (await getApp(ctx.db, app.app.id)).pageSettings

  it('all last, although each command read the app before any was made', async () => {
    await changeApp(ctx, 'linh', app.app, { accent: '#1b5fc1' })
    await changeApp(ctx, 'minh', app.app, { support: 'help@shop.example.com' })
    await changeApp(ctx, 'linh', app.app, { logo: PNG })
    expect(await settings()).to.include({ accent: '#1b5fc1', support: 'help@shop.example.com' })
    expect(await settings()).to.have.property('logo')
  })

  it('all last when they come at the same time', async () => {
    const changes = {
      accent: '#1b5fc1',
      support: 'help@shop.example.com',
      time_zone: 'Asia/Ho_Chi_Minh',
      statement_name: 'SHOP',
      receipts: true,
      bank_app_links: false,
    }
    await Promise.all(
      Object.entries(changes).map(([name, value]) => changeApp(ctx, 'linh', app.app, { [name]: value })),
    )
    expect(await settings()).to.deep.equal(changes)
  })
})
