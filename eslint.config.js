import regexp from 'eslint-plugin-regexp'
import tseslint from 'typescript-eslint'

export default tseslint.config(
  { ignores: ['node_modules/', 'var/', 'dist/', 'client/dist/', '**/*.js', '**/*.cjs', '**/*.mjs'] },
  tseslint.configs.strictTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/consistent-type-imports': ['error', { fixStyle: 'inline-type-imports' }],
      'no-duplicate-imports': 'error',
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      '@typescript-eslint/switch-exhaustiveness-check': 'error',
      // TypeORM takes plain objects where its types name a class.
      '@typescript-eslint/no-unsafe-class-instance-assignment': 'off',
      // chai's assertions are property reads.
      '@typescript-eslint/no-unused-expressions': 'off',
      eqeqeq: 'error',
      'no-console': 'error',
    },
  },
  {
    // Whoever writes a mail, a request or a notification chooses what these expressions read, and one thread answers everybody.
    files: ['src/**', 'jobs/**'],
    plugins: { regexp },
    rules: {
      'regexp/no-super-linear-backtracking': ['error', { report: 'potential' }],
      'regexp/no-super-linear-move': ['error', { report: 'potential', ignorePartial: false }],
    },
  },
  {
    // A program of its own, which talks to whoever runs it.
    files: ['test/samples/shop/**'],
    rules: { 'no-console': 'off' },
  },
  {
    files: ['test/**', 'bench/**'],
    rules: {
      '@typescript-eslint/no-non-null-assertion': 'off',
      '@typescript-eslint/no-unnecessary-condition': 'off',
    },
  },
)
