'use client'
import { apiFetch } from 'platform-auth-server/client'
import { useEffect, useState } from 'react'

export default function Page() {
  const [greeting, setGreeting] = useState('')
  useEffect(() => {
    apiFetch('/api/auth/profile')
      .then(response => response.json())
      .then(({ name }) => setGreeting(`Hello, ${name}`))
  }, [])
  return <p id="greeting">{greeting}</p>
}
