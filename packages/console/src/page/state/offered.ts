/** Views of the menu. What cannot show anything in this cluster is not offered (page.md 2). */
import { computed } from '@preact/signals'
import { path, type View, views } from './router.ts'
import { absences, header, mayReplay, rowsOf } from './store.ts'

/** Absent in the menu only: its address works, and says what is missing. */
export const offeredViews = computed<readonly View[]>(() =>
  views.filter((view) => view.path === path.value || isOffered(view.path)),
)

function isOffered(view: string): boolean {
  // Before the first picture nothing is known.
  if (header.value === undefined) return true
  const isAbsent = (what: string) => absences.value.some((each) => each.what === what)
  const hasNodes = rowsOf('nodes').length + rowsOf('claims').length > 0
  const hasPools = rowsOf('pools').length > 0
  switch (view) {
    case '/map':
    case '/cost':
      return hasNodes
    case '/pods':
      return !isAbsent('pods')
    case '/pools':
      return hasPools || rowsOf('groups').length > 0 || !isAbsent('nodepools')
    case '/what-if':
      return hasPools
    case '/decisions':
      return rowsOf('decisions').length > 0 || !isAbsent('journal')
    case '/replay':
      return mayReplay.value
    default:
      return true
  }
}
