/** Words of two syllables that the pages use. A browser may break a line between the syllables, which reads like a broken word. */
const COMPOUNDS =
  'áp dụng|bắt đầu|chuyển khoản|chúng tôi|còn thiếu|cung cấp|đăng ký|ghi nhận|gia hạn|giây lát|hết hạn|hiệu lực|hoàn tất|hỗ trợ|' +
  'kiểm tra|liên hệ|liên kết|ngân hàng|nhân viên|nội dung|phương thức|quay lại|sao kê|số tiền|tài khoản|thanh toán|' +
  'tham chiếu|thay đổi|thông báo|thông tin|tiếp tục|tổng số|trình duyệt|trọn đời|tự động|tự nhập|ứng dụng|vui lòng|xác nhận|xử lý'

const BREAKABLE = new RegExp(`(?<!\\p{L})(?:${COMPOUNDS})(?!\\p{L})`, 'giu')

/** Keeps the syllables of a word on one line. */
export function keepWordsTogether(text: string): string {
  return text.replace(BREAKABLE, (word) => word.replace(' ', '\u00a0'))
}
