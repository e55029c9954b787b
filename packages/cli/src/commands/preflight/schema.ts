/** What `tenon preflight` prints (ask.md 10). */
import { count, document, type JsonSchema, list, object, optional, text, words } from '@tenon/ask/schema'
import type { PrintedPreflight } from './render.ts'
import type { Finding } from './check.ts'

const status = { ok: '', warn: '', fail: 'keeps an installation from working' }

export const preflightSchema: JsonSchema = document<PrintedPreflight>(
  'PreflightReport',
  'Checks before an installation: tenon preflight.',
  {
    status: words<PrintedPreflight['status']>(status),
    checks: list(
      object<PrintedPreflight['checks'][number]>({
        name: text(),
        status: words<PrintedPreflight['status']>(status),
        message: optional(text('what was found in order; absent with findings')),
        findings: list(
          object<Finding>({
            status: words<Finding['status']>({ warn: '', fail: '' }),
            message: text(),
            fix: text(),
          }),
        ),
        durationMs: count(),
      }),
    ),
  },
  'none',
)
