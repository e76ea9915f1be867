/** The api_key of the demo. No other app can have it: other keys are random, and an app's key never changes. */
export const DEMO_KEY = `pk_test_${'de30'.repeat(6)}`
