/** A bank of the VietQR list. */
export interface Bank {
  /** The bank identification number that goes into the QR code. */
  readonly bin: string
  /** The list's short code. */
  readonly code: string
  /** The name that payers know. */
  readonly name: string
}

/** Every bank that an account can be at: BIN, short code, name, and other names that people use. */
export const VIETQR_LIST: readonly (readonly [string, string, string, ...string[]])[] = [
  ['970425', 'ABB', 'ABBANK', 'An Binh'],
  ['970416', 'ACB', 'ACB', 'A Chau'],
  ['970405', 'VBA', 'Agribank', 'VBARD', 'AGRI', 'Nong nghiep va Phat trien Nong thon Viet Nam'],
  ['970409', 'BAB', 'BacABank', 'Bac A'],
  ['970438', 'BVB', 'BaoVietBank', 'Bao Viet'],
  ['970418', 'BIDV', 'BIDV', 'Dau tu va Phat trien Viet Nam'],
  ['970454', 'VCCB', 'BVBank', 'VietCapitalBank', 'Ban Viet'],
  ['546034', 'CAKE', 'CAKE', 'CAKE by VPBank'],
  ['970444', 'CBB', 'CBBank'],
  ['422589', 'CIMB', 'CIMB'],
  ['533948', 'CITIBANK', 'Citibank'],
  ['970446', 'COOPBANK', 'Co-opBank'],
  ['796500', 'DBS', 'DBS Bank'],
  ['970431', 'EIB', 'Eximbank'],
  ['970408', 'GPB', 'GPBank'],
  ['970437', 'HDB', 'HDBank'],
  ['970442', 'HLBVN', 'Hong Leong Bank', 'HongLeong'],
  ['458761', 'HSBC', 'HSBC'],
  ['970455', 'IBKHN', 'IBK Hanoi'],
  ['970456', 'IBKHCM', 'IBK Ho Chi Minh City'],
  ['970434', 'IVB', 'Indovina Bank', 'IndovinaBank'],
  ['668888', 'KBANK', 'KBank', 'Kasikornbank'],
  ['970462', 'KBHN', 'Kookmin Hanoi'],
  ['970463', 'KBHCM', 'Kookmin Ho Chi Minh City'],
  ['970467', 'KEBHANAHN', 'KEB Hana Hanoi'],
  ['970466', 'KEBHANAHCM', 'KEB Hana Ho Chi Minh City'],
  ['970452', 'KLB', 'Kienlongbank', 'Kien Long'],
  ['963369', 'LIOBANK', 'Liobank'],
  ['970449', 'LPB', 'LPBank', 'LienVietPostBank'],
  ['970422', 'MB', 'MBBank', 'Military Bank', 'Quan doi'],
  ['970414', 'MBV', 'MBV', 'OceanBank', 'OJB'],
  ['971025', 'MOMO', 'MoMo'],
  ['970426', 'MSB', 'MSB', 'Maritime Bank', 'Hang Hai Viet Nam'],
  ['970428', 'NAB', 'Nam A Bank', 'NamABank'],
  ['970419', 'NCB', 'NCB', 'Quoc Dan'],
  ['801011', 'NHBHN', 'Nonghyup Hanoi', 'Nonghyup'],
  ['970448', 'OCB', 'OCB', 'Phuong Dong'],
  ['970439', 'PBVN', 'Public Bank', 'PublicBank'],
  ['970430', 'PGB', 'PGBank'],
  ['970412', 'PVCB', 'PVcomBank'],
  ['970403', 'STB', 'Sacombank', 'Sai Gon Thuong Tin'],
  ['970400', 'SGICB', 'SaigonBank'],
  ['970429', 'SCB', 'SCB', 'Sai Gon'],
  ['970440', 'SEAB', 'SeABank', 'Dong Nam A'],
  ['970443', 'SHB', 'SHB', 'Sai Gon Ha Noi'],
  ['970424', 'SHBVN', 'Shinhan Bank', 'ShinhanBank', 'Shinhan'],
  ['970410', 'SCVN', 'Standard Chartered', 'StandardChartered'],
  ['970407', 'TCB', 'Techcombank', 'Ky thuong Viet Nam'],
  ['963388', 'TIMO', 'Timo', 'Timo by BVBank'],
  ['970423', 'TPB', 'TPBank', 'Tien Phong'],
  ['546035', 'UBANK', 'Ubank'],
  ['970458', 'UOB', 'UOB', 'United Overseas Bank'],
  ['970441', 'VIB', 'VIB', 'Quoc te Viet Nam'],
  ['970427', 'VAB', 'VietABank', 'Viet A'],
  ['970433', 'VIETBANK', 'VietBank'],
  ['970436', 'VCB', 'Vietcombank', 'Ngoai thuong Viet Nam'],
  ['970415', 'ICB', 'VietinBank', 'CTG', 'Cong thuong Viet Nam'],
  ['970406', 'VIKKI', 'Vikki', 'DongA Bank', 'DOB'],
  ['970432', 'VPB', 'VPBank', 'Viet Nam Thinh Vuong'],
  ['970421', 'VRB', 'VRB'],
  ['970457', 'WVN', 'Woori', 'Woori Bank'],
]

const BY_NAME = new Map(
  VIETQR_LIST.flatMap(([bin, code, name, ...others]) =>
    [bin, code, name, ...others].map((word) => [fold(word), { bin, code, name }] as const),
  ),
)

/** The bank of a short code (`VCB`), a BIN (`970436`) or a name (`Vietcombank`), in any case; null if there is none. */
export function findBank(text: string): Bank | null {
  return BY_NAME.get(fold(text)) ?? null
}

function fold(text: string): string {
  return (
    text
      .normalize('NFKD')
      .replace(/đ/gi, 'd')
      .replace(/[^0-9a-z]/gi, '')
      .toLowerCase()
      // The full name of "Á Châu" is "Ngân hàng TMCP Á Châu".
      .replace(/^nganhang(thuongmaicophan|tmcp)?/, '')
  )
}
