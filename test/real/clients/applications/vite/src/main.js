import { apiFetch } from 'platform-auth-server/client'
import { greeting } from './greeting.js'

const response = await apiFetch('/api/auth/profile')
const { name } = await response.json()
const show = text => {
  document.querySelector('#greeting').textContent = `${text}, ${name}`
}
show(greeting)
import.meta.hot?.accept('./greeting.js', changed => show(changed.greeting))
