import type { ErrorCode } from '#shared/errors.ts'
import type { Locale } from '#shared/locale.ts'

/** The text of a page with one message. */
export interface Notice {
  readonly heading: string
  readonly lines: readonly string[]
}

/** The texts of the checkout, bank and message pages in one language. */
export interface PageTexts {
  readonly errors: Readonly<Partial<Record<ErrorCode, Notice>>> &
    Readonly<Record<'invalid_request' | 'internal_error' | 'service_unavailable', Notice>>
  /** Replaces `checkout_expired` if the subscription has changed since the link was made. */
  readonly overtaken: Notice
  /** Replaces its lines while a payment is being processed. */
  readonly overtakenWhileProcessing: (appName: string) => string
  /** About a transfer that may be on its way to a link that can no longer be paid. */
  readonly afterTransfer: {
    readonly noMore: string
    readonly isChecked: (appName: string) => string
    readonly counts: string
    readonly newLink: string
  }
  readonly reference: string
  readonly startAgain: string
  readonly tryAgain: string
  readonly backTo: (appName: string) => string
  readonly checkout: {
    readonly pageTitle: (title: string) => string
    readonly pay: string
    readonly received: (received: string, asked: string) => string
    readonly choose: string
    readonly processing: string
    readonly processingHint: string
    readonly noMethods: (appName: string) => string
    readonly oneTime: string
    readonly forInterval: (interval: string) => string
    readonly lifetime: string
    readonly trial: (interval: string) => string
    readonly afterwards: (price: string, interval: string) => string
    /** Instead of `pay`, after a part of it has arrived. */
    readonly leftToPay: string
    /** What a payment will do: `After payment: valid until 1 May 2026 (adds 1 month)`. */
    readonly validUntil: string
    readonly neverExpires: string
    readonly adds: (interval: string) => string
    readonly startsToday: string
    readonly payAnyway: string
    readonly restOnly: string
    readonly refusedLifetime: string
    readonly refusedPeriod: (appName: string) => string
    readonly noAutomaticCharge: string
    readonly statement: (name: string) => string
    readonly about: string
    readonly timeLeft: string
    readonly cancel: (appName: string) => string
  }
  readonly bank: {
    readonly pageTitle: string
    readonly heading: string
    readonly lead: string
    readonly qrAlt: (amount: string, account: string, bank: string, code: string) => string
    readonly saveQr: string
    readonly openApp: string
    readonly openAppHint: string
    readonly bankName: string
    readonly accountNumber: string
    readonly accountHolder: string
    readonly amount: string
    readonly amountLeft: string
    readonly code: string
    readonly codeNote: string
    readonly copy: string
    readonly copied: string
    readonly copyLabel: (what: string) => string
    readonly received: (received: string, asked: string) => string
    readonly sameCode: string
    readonly waiting: string
    readonly waitingHint: string
    /** Instead of the last two, after three minutes. */
    readonly slow: string
    readonly slowHint: (appName: string, code: string) => string
    readonly contact: (appName: string) => string
    readonly checkAgain: string
    readonly paid: string
    readonly timeLeft: string
    readonly lateNote: string
    /** Instead of the last two, after the link expired. */
    readonly restNote: string
    readonly otherMethod: string
  }
  readonly paid: {
    readonly heading: string
    readonly bought: string
    readonly discount: string
    readonly until: string
    readonly access: string
    readonly lifetime: string
    readonly paidAt: string
    readonly method: string
    readonly reference: string
    readonly review: (appName: string) => string
    readonly leadsOn: string
  }
  /** For a payment that arrived in part, when its link has expired or been overtaken. */
  readonly part: {
    readonly received: (received: string, asked: string, due: string) => string
    readonly transferRest: (due: string, code: string) => string
    readonly payRest: (due: string) => string
    readonly moneyBack: (appName: string) => string
    readonly completeOrBack: (appName: string) => string
    readonly decide: (appName: string) => string
  }
  /** In whole minutes, or in whole hours from two hours on. */
  readonly duration: (seconds: number) => string
}

const en: PageTexts = {
  errors: {
    not_found: {
      heading: 'Page not found',
      lines: ['The link may be incomplete. Open it again from the app or the email that it came from.'],
    },
    checkout_expired: {
      heading: 'This payment link has expired',
      lines: ['This link can no longer be used. Go back to the app or page you came from to get a new one.'],
    },
    payment_method_unavailable: {
      heading: 'This payment method is not available',
      lines: ['This method does not apply to this payment. Please choose another one.'],
    },
    provider_error: {
      heading: 'The payment provider is not responding',
      lines: ['You have not been charged. Please try again in a moment, or choose another payment method.'],
    },
    invalid_request: {
      heading: 'That did not work',
      lines: ['We could not read what your browser sent. Please go back and try again.'],
    },
    already_lifetime: {
      heading: 'No payment is due',
      lines: ['You have lifetime access.'],
    },
    rate_limited: { heading: 'We are very busy right now', lines: ['Please wait a moment and try again.'] },
    internal_error: {
      heading: 'Something went wrong on our side',
      lines: ['Please try again in a moment. If the problem continues, quote the reference below.'],
    },
    service_unavailable: {
      heading: 'This is not possible at the moment',
      lines: ['Please try again in a moment.'],
    },
  },
  overtaken: {
    heading: 'Your subscription has changed',
    lines: ['It has just changed, so this link can no longer be used. Go back to get a new one.'],
  },
  overtakenWhileProcessing: (appName) =>
    `It has just changed while your payment is being processed. Your money is safe. ${appName} will check the payment and contact you.`,
  afterTransfer: {
    noMore:
      "It has just changed, so this link can no longer be used. Please don't make another transfer with this code.",
    isChecked: (appName) =>
      `Already transferred? Your money is safe. ${appName} will check the transfer and contact you.`,
    counts: 'Already transferred? Your money is safe. It counts as soon as the bank reports it.',
    newLink: 'If not, go back to the app or page you came from to get a new link.',
  },
  reference: 'Reference',
  startAgain: 'Back to the payment page',
  tryAgain: 'Try again',
  backTo: (appName) => `Back to ${appName}`,
  checkout: {
    pageTitle: (title) => `Pay for ${title}`,
    pay: 'Amount due',
    leftToPay: 'Left to pay:',
    received: (received, asked) => `We have already received ${received} of ${asked}.`,
    choose: 'How would you like to pay?',
    processing: 'Your payment is being processed.',
    processingHint: 'There is nothing more to do. Your bank still has to confirm it, which can take a few days.',
    noMethods: (appName) => `No payment method is available right now. Please contact ${appName}.`,
    oneTime: 'One-time purchase',
    forInterval: (interval) => `for ${interval}`,
    lifetime: 'Lifetime access, one payment',
    trial: (interval) => `trial for ${interval}`,
    afterwards: (price, interval) => `Then ${price} for ${interval}, only if you choose to renew.`,
    validUntil: 'After payment: valid until',
    neverExpires: 'After payment: never expires',
    adds: (interval) => `adds ${interval}`,
    startsToday: 'starts today',
    payAnyway: 'Pay anyway',
    restOnly: 'Whichever method you choose, you pay only the rest.',
    refusedLifetime: 'You already have lifetime access. No payment is due.',
    refusedPeriod: (appName) =>
      `This payment cannot be applied at the moment. Please contact ${appName} before you pay.`,
    noAutomaticCharge: 'You pay once. Nothing is charged automatically.',
    statement: (name) => `Your statement shows this payment as “${name}”.`,
    about: 'About this plan',
    timeLeft: 'Expires in',
    cancel: (appName) => `Cancel and go back to ${appName}`,
  },
  bank: {
    pageTitle: 'Bank transfer',
    heading: 'Pay by bank transfer',
    lead: 'Scan this QR code with your banking app, or save it and choose it from your photos. Amount and note are filled in for you.',
    qrAlt: (amount, account, bank, code) =>
      `VietQR code: transfer ${amount} to account ${account} at ${bank} with the note ${code}`,
    saveQr: 'Save QR image',
    openApp: 'Open in my banking app',
    openAppHint:
      'Opens through vietqr.io. If your app does not fill in the details, save the QR image and choose it from your photos.',
    bankName: 'Bank',
    accountNumber: 'Account number',
    accountHolder: 'Account holder',
    amount: 'Amount',
    amountLeft: 'Amount left to pay',
    code: 'Transfer note (nội dung)',
    codeNote: 'Enter the note exactly as shown, so that we recognise your payment.',
    copy: 'Copy',
    copied: 'Copied',
    copyLabel: (what) => `Copy: ${what}`,
    received: (received, asked) => `We received ${received} of ${asked}.`,
    sameCode: 'Transfer the rest with the same note. The QR code already has the right amount.',
    waiting: 'Waiting for your transfer',
    waitingHint: 'This page updates by itself when the money arrives.',
    slow: 'Transferred, but nothing has changed here?',
    slowHint: (appName, code) =>
      `It usually takes 1–5 minutes. Keep your receipt and contact ${appName} with the code ${code}.`,
    contact: (appName) => `Contact ${appName}`,
    checkAgain: 'Check again',
    paid: 'Payment received. One moment…',
    timeLeft: 'Expires in',
    lateNote: 'A transfer that arrives after this time still counts.',
    restNote: 'This link has expired, but the rest still counts when it arrives.',
    otherMethod: 'Choose another payment method',
  },
  paid: {
    heading: 'Payment received',
    bought: 'For',
    discount: 'Discount',
    until: 'Valid until',
    access: 'Access',
    lifetime: 'Lifetime',
    paidAt: 'Paid',
    method: 'Method',
    reference: 'Reference',
    review: (appName) =>
      `This payment could not be applied to your subscription. Your money is safe. ${appName} will check the payment and contact you.`,
    leadsOn: 'This page continues automatically in a few seconds.',
  },
  part: {
    received: (received, asked, due) => `We received ${received} of ${asked}. Left to pay: ${due}.`,
    transferRest: (due, code) =>
      `You can still transfer the remaining ${due} with the note ${code}. The payment is complete as soon as it arrives.`,
    payRest: (due) => `Pay ${due}`,
    moneyBack: (appName) => `Would you rather have your money back? Please contact ${appName}.`,
    decide: (appName) => `Please contact ${appName} about the money that has arrived.`,
    completeOrBack: (appName) => `Please contact ${appName} to complete the payment or to get your money back.`,
  },
  duration: (seconds) => {
    const [count, unit] = lengthOf(seconds)
    return `${count} ${unit}${count === 1 ? '' : 's'}`
  },
}

const vi: PageTexts = {
  errors: {
    not_found: {
      heading: 'Không tìm thấy trang',
      lines: ['Có thể liên kết chưa đầy đủ. Vui lòng mở lại từ ứng dụng hoặc email nơi bạn nhận được liên kết.'],
    },
    checkout_expired: {
      heading: 'Liên kết thanh toán đã hết hạn',
      lines: ['Liên kết này không còn dùng được. Vui lòng quay lại ứng dụng hoặc trang trước đó để lấy liên kết mới.'],
    },
    payment_method_unavailable: {
      heading: 'Không dùng được phương thức này',
      lines: ['Phương thức này không áp dụng cho khoản thanh toán này. Vui lòng chọn phương thức khác.'],
    },
    provider_error: {
      heading: 'Cổng thanh toán không phản hồi',
      lines: ['Bạn chưa bị trừ tiền. Vui lòng thử lại sau giây lát hoặc chọn phương thức khác.'],
    },
    invalid_request: {
      heading: 'Chưa thực hiện được',
      lines: ['Chúng tôi không đọc được dữ liệu trình duyệt gửi đến. Vui lòng quay lại và thử lại.'],
    },
    already_lifetime: {
      heading: 'Bạn không cần thanh toán',
      lines: ['Gói của bạn có hiệu lực trọn đời.'],
    },
    rate_limited: { heading: 'Hệ thống đang quá tải', lines: ['Vui lòng chờ giây lát rồi thử lại.'] },
    internal_error: {
      heading: 'Hệ thống gặp lỗi',
      lines: ['Vui lòng thử lại sau giây lát. Nếu vẫn gặp lỗi, vui lòng cung cấp mã tham chiếu bên dưới.'],
    },
    service_unavailable: {
      heading: 'Tạm thời chưa thực hiện được',
      lines: ['Vui lòng thử lại sau giây lát.'],
    },
  },
  overtaken: {
    heading: 'Gói đăng ký của bạn đã thay đổi',
    lines: ['Gói của bạn vừa thay đổi nên liên kết này không còn dùng được. Vui lòng quay lại để lấy liên kết mới.'],
  },
  overtakenWhileProcessing: (appName) =>
    `Gói của bạn vừa thay đổi trong khi khoản thanh toán đang được xử lý. Tiền của bạn vẫn an toàn. ${appName} sẽ kiểm tra và liên hệ với bạn.`,
  afterTransfer: {
    noMore:
      'Gói của bạn vừa thay đổi nên liên kết này không còn dùng được. Vui lòng không chuyển thêm tiền với mã này.',
    isChecked: (appName) => `Nếu bạn đã chuyển khoản, tiền vẫn an toàn. ${appName} sẽ kiểm tra và liên hệ với bạn.`,
    counts: 'Nếu bạn đã chuyển khoản, tiền vẫn an toàn. Khoản chuyển được ghi nhận ngay khi ngân hàng báo tiền về.',
    newLink: 'Nếu chưa, vui lòng quay lại ứng dụng hoặc trang trước đó để lấy liên kết mới.',
  },
  reference: 'Mã tham chiếu',
  startAgain: 'Về trang thanh toán',
  tryAgain: 'Thử lại',
  backTo: (appName) => `Quay lại ${appName}`,
  checkout: {
    pageTitle: (title) => `Thanh toán ${title}`,
    pay: 'Cần thanh toán',
    leftToPay: 'Còn phải trả',
    received: (received, asked) => `Chúng tôi đã nhận được ${received} trên tổng số ${asked}.`,
    choose: 'Chọn phương thức thanh toán',
    processing: 'Khoản thanh toán của bạn đang được xử lý.',
    processingHint: 'Bạn không cần làm gì thêm. Ngân hàng còn phải xác nhận, có thể mất vài ngày.',
    noMethods: (appName) => `Hiện chưa có phương thức thanh toán nào. Vui lòng liên hệ ${appName}.`,
    oneTime: 'Mua một lần',
    forInterval: (interval) => `cho ${interval}`,
    lifetime: 'Dùng trọn đời, thanh toán một lần',
    trial: (interval) => `dùng thử ${interval}`,
    afterwards: (price, interval) => `Sau đó ${price} cho ${interval}, chỉ khi bạn chọn gia hạn.`,
    validUntil: 'Sau khi thanh toán: dùng đến',
    neverExpires: 'Sau khi thanh toán: dùng trọn đời',
    adds: (interval) => `thêm ${interval}`,
    startsToday: 'tính từ hôm nay',
    payAnyway: 'Vẫn thanh toán',
    restOnly: 'Dù chọn phương thức nào, bạn chỉ thanh toán phần còn lại.',
    refusedLifetime: 'Bạn đã có gói trọn đời. Bạn không cần thanh toán nữa.',
    refusedPeriod: (appName) =>
      `Khoản thanh toán này hiện không áp dụng được. Vui lòng liên hệ ${appName} trước khi thanh toán.`,
    noAutomaticCharge: 'Bạn chỉ thanh toán một lần. Chúng tôi không tự động thu tiền.',
    statement: (name) => `Trên sao kê, khoản này hiển thị là “${name}”.`,
    about: 'Thông tin về gói này',
    timeLeft: 'Hết hạn sau',
    cancel: (appName) => `Hủy và quay lại ${appName}`,
  },
  bank: {
    pageTitle: 'Chuyển khoản ngân hàng',
    heading: 'Thanh toán bằng chuyển khoản',
    lead: 'Quét mã QR này bằng ứng dụng ngân hàng, hoặc lưu ảnh rồi chọn trong thư viện ảnh. Số tiền và nội dung được điền sẵn.',
    qrAlt: (amount, account, bank, code) =>
      `Mã VietQR: chuyển ${amount} đến tài khoản ${account} tại ${bank} với nội dung ${code}`,
    saveQr: 'Lưu ảnh QR',
    openApp: 'Mở ứng dụng ngân hàng',
    openAppHint:
      'Mở qua vietqr.io. Nếu ứng dụng không tự điền thông tin, vui lòng lưu ảnh QR rồi chọn trong thư viện ảnh.',
    bankName: 'Ngân hàng',
    accountNumber: 'Số tài khoản',
    accountHolder: 'Chủ tài khoản',
    amount: 'Số tiền',
    amountLeft: 'Số tiền còn phải trả',
    code: 'Nội dung chuyển khoản',
    codeNote: 'Vui lòng nhập đúng nội dung này để chúng tôi nhận ra khoản thanh toán của bạn.',
    copy: 'Sao chép',
    copied: 'Đã chép',
    copyLabel: (what) => `Sao chép: ${what}`,
    received: (received, asked) => `Đã nhận được ${received} trên tổng số ${asked}.`,
    sameCode: 'Vui lòng chuyển phần còn lại với cùng nội dung. Mã QR đã điền sẵn số tiền còn lại.',
    waiting: 'Đang chờ bạn chuyển khoản',
    waitingHint: 'Trang sẽ tự cập nhật khi tiền về.',
    slow: 'Đã chuyển mà chưa thấy cập nhật?',
    slowHint: (appName, code) => `Thường mất 1–5 phút. Giữ lại biên lai và liên hệ ${appName}, mã ${code}.`,
    contact: (appName) => `Liên hệ ${appName}`,
    checkAgain: 'Kiểm tra lại',
    paid: 'Đã nhận thanh toán. Xin chờ giây lát…',
    timeLeft: 'Hết hạn sau',
    lateNote: 'Tiền về sau thời hạn này vẫn được ghi nhận.',
    restNote: 'Liên kết đã hết hạn, nhưng tiền về sau thời hạn này vẫn được ghi nhận.',
    otherMethod: 'Chọn phương thức khác',
  },
  paid: {
    heading: 'Đã nhận thanh toán',
    bought: 'Thanh toán cho',
    discount: 'Giảm giá',
    until: 'Có hiệu lực đến',
    access: 'Thời hạn',
    lifetime: 'Trọn đời',
    paidAt: 'Thời gian',
    method: 'Phương thức',
    reference: 'Mã tham chiếu',
    review: (appName) =>
      `Khoản thanh toán này chưa áp dụng được cho gói của bạn. Tiền của bạn vẫn an toàn. ${appName} sẽ kiểm tra và liên hệ với bạn.`,
    leadsOn: 'Trang sẽ tự chuyển tiếp sau vài giây.',
  },
  part: {
    received: (received, asked, due) =>
      `Chúng tôi đã nhận được ${received} trên tổng số ${asked}. Còn phải trả ${due}.`,
    transferRest: (due, code) =>
      `Bạn vẫn có thể chuyển ${due} còn lại với nội dung ${code}. Thanh toán sẽ hoàn tất ngay khi chúng tôi nhận được tiền.`,
    payRest: (due) => `Thanh toán ${due}`,
    moneyBack: (appName) => `Bạn muốn nhận lại tiền? Vui lòng liên hệ ${appName}.`,
    decide: (appName) => `Vui lòng liên hệ ${appName} về khoản tiền đã nhận.`,
    completeOrBack: (appName) => `Vui lòng liên hệ ${appName} để hoàn tất thanh toán hoặc nhận lại tiền.`,
  },
  duration: (seconds) => {
    const [count, unit] = lengthOf(seconds)
    return `${count} ${unit === 'hour' ? 'giờ' : 'phút'}`
  },
}

function lengthOf(seconds: number): [count: number, unit: 'hour' | 'minute'] {
  const minutes = Math.ceil(seconds / 60)
  return minutes < 120 ? [minutes, 'minute'] : [Math.floor(minutes / 60), 'hour']
}

const TEXTS: Record<Locale, PageTexts> = { en, vi }

export function pageTexts(locale: Locale): PageTexts {
  return TEXTS[locale]
}
