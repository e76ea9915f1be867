/** Words of two syllables that the pages use. A browser may break a line between the syllables, which reads like a broken word. */
const COMPOUNDS =
  'áp dụng|bắt đầu|chuyển khoản|chúng tôi|còn thiếu|cung cấp|đăng ký|ghi nhận|gia hạn|giây lát|hết hạn|hiệu lực|hoàn tất|hỗ trợ|' +
  'kiểm tra|liên hệ|liên kết|ngân hàng|nhân viên|nội dung|phương thức|quay lại|sao kê|số tiền|tài khoản|thanh toán|' +
  'tham chiếu|thay đổi|thông báo|thông tin|tiếp tục|tổng số|trình duyệt|trọn đời|tự động|tự nhập|ứng dụng|vui lòng|xác nhận|xử lý'

/** Attributes that are addresses, or that a form sends: replacing a blank would change their meaning. */
const EXACT = '(?:href|action|content|value)="[^"]*"'
const EXACT_OR_BREAKABLE = new RegExp(`${EXACT}|(?<!\\p{L})(?:${COMPOUNDS})(?!\\p{L})`, 'giu')

/** Keeps the syllables of a word on one line, wherever the HTML shows them. */
export function keepWordsTogether(html: string): string {
  return html.replace(EXACT_OR_BREAKABLE, (found) => (found.endsWith('"') ? found : found.replace(' ', '\u00a0')))
}
