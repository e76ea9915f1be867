/** The api_key that marks the demo: no other app can have it, since all others' keys are random, and an app's key never changes. */
export const DEMO_KEY = `pk_test_${'de30'.repeat(6)}`
