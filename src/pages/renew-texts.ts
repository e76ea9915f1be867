import type { Locale } from '#shared/locale.ts'

/** The texts of the renewal and opt-out pages in one language. */
export interface RenewTexts {
  readonly pageTitle: (title: string) => string
  readonly validNow: string
  readonly endedOn: string
  readonly renewedAlready: (end: string) => string
  readonly renewedHint: string
  readonly payAgain: string
  readonly renewedMeanwhile: string
  readonly stillOpen: string
  readonly stillOpenHint: string
  readonly continuePayment: string
  readonly cannotExtend: (appName: string) => string
  readonly disabled: (appName: string) => string
  readonly stopReminders: string
  readonly lifetimeHeading: string
  readonly lifetimeLines: readonly string[]
  readonly optOut: {
    readonly title: string
    readonly question: (title: string) => string
    readonly hint: string
    readonly stop: string
    readonly keep: string
    readonly doneHeading: string
    readonly doneLines: (title: string) => readonly string[]
    readonly renew: string
  }
}

const en: RenewTexts = {
  pageTitle: (title) => `Renew ${title}`,
  validNow: 'Currently valid until',
  endedOn: 'Ended on',
  renewedAlready: (end) => `Already renewed: valid until ${end}.`,
  renewedHint: 'No payment is due. If you pay now, another period is added.',
  payAgain: 'Pay for another period',
  renewedMeanwhile: 'Another payment arrived after you opened this page. You have not been charged again.',
  stillOpen: 'A payment that you started here is still open.',
  stillOpenHint:
    'Just paid? The confirmation can take a moment. If not, continue that payment. You will not be charged twice.',
  continuePayment: 'Continue that payment',
  cannotExtend: (appName) => `This subscription cannot be extended any further. Please contact ${appName}.`,
  disabled: (appName) => `${appName} is not accepting payments at the moment.`,
  stopReminders: 'Stop reminders for this subscription',
  lifetimeHeading: 'You have lifetime access',
  lifetimeLines: ['There is nothing to renew, and we will send no reminders.'],
  optOut: {
    title: 'Stop reminders',
    question: (title) => `Stop reminders for ${title}?`,
    hint: "We won't email you before or after this subscription ends. The subscription itself does not change.",
    stop: 'Stop reminders',
    keep: 'Keep reminders',
    doneHeading: 'Reminders are stopped',
    doneLines: (title) => [`We will send no more reminders for ${title}.`, 'Your subscription does not change.'],
    renew: 'Go to the renewal page',
  },
}

const vi: RenewTexts = {
  pageTitle: (title) => `Gia hạn ${title}`,
  validNow: 'Đang có hiệu lực đến',
  endedOn: 'Đã hết hạn vào',
  renewedAlready: (end) => `Đã gia hạn: có hiệu lực đến ${end}.`,
  renewedHint: 'Bạn chưa cần thanh toán. Nếu thanh toán tiếp, gói sẽ được cộng thêm một kỳ.',
  payAgain: 'Thanh toán thêm một kỳ',
  renewedMeanwhile:
    'Chúng tôi đã nhận được một khoản thanh toán khác sau khi bạn mở trang này. Bạn không bị thu tiền thêm.',
  stillOpen: 'Khoản thanh toán bạn bắt đầu tại đây vẫn chưa hoàn tất.',
  stillOpenHint:
    'Bạn vừa thanh toán? Việc xác nhận có thể mất ít phút. Nếu chưa, vui lòng tiếp tục. Bạn sẽ không bị thu tiền hai lần.',
  continuePayment: 'Tiếp tục thanh toán',
  cannotExtend: (appName) => `Không thể gia hạn thêm gói này. Vui lòng liên hệ ${appName}.`,
  disabled: (appName) => `${appName} hiện không nhận thanh toán.`,
  stopReminders: 'Ngừng nhận email nhắc gia hạn cho gói này',
  lifetimeHeading: 'Bạn đã có gói trọn đời',
  lifetimeLines: ['Bạn không cần gia hạn và sẽ không nhận email nhắc gia hạn.'],
  optOut: {
    title: 'Ngừng nhận email nhắc gia hạn',
    question: (title) => `Ngừng nhận email nhắc gia hạn cho ${title}?`,
    hint: 'Chúng tôi sẽ không gửi email trước và sau khi gói này hết hạn. Gói đăng ký của bạn không thay đổi.',
    stop: 'Ngừng nhận email',
    keep: 'Tiếp tục nhận email',
    doneHeading: 'Đã ngừng gửi email nhắc gia hạn',
    doneLines: (title) => [
      `Bạn sẽ không nhận thêm email nhắc gia hạn cho ${title}.`,
      'Gói đăng ký của bạn không thay đổi.',
    ],
    renew: 'Đến trang gia hạn',
  },
}

export function renewTexts(locale: Locale): RenewTexts {
  return locale === 'vi' ? vi : en
}
